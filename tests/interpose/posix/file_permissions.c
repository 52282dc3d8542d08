// SPDX-License-Identifier: Apache-2.0
// umask clears bits of new files; chmod and fchmodat set them; access and faccessat report them;
// chown to oneself succeeds, and only root gives files away.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

static int mode(int d, const char* name) {
  struct stat s;
  CHECK_EQUAL(fstatat(d, name, &s, AT_SYMLINK_NOFOLLOW), 0);
  return s.st_mode & 07777;
}

int main(void) {
  char dir[] = "/tmp/modesXXXXXX";
  CHECK(mkdtemp(dir) != NULL);
  const int d = open(dir, O_RDONLY);
  umask(0);
  CHECK_EQUAL(umask(027), 0);
  CHECK_EQUAL(umask(027), 027);
  const int f = openat(d, "f", O_CREAT | O_RDWR, 0666);
  CHECK_EQUAL(mode(d, "f"), 0640);
  CHECK_EQUAL(mkdirat(d, "sub", 0777), 0);
  CHECK_EQUAL(mode(d, "sub"), 0750);
  CHECK_EQUAL(mkfifoat(d, "fifo", 0666), 0);
  CHECK_EQUAL(mode(d, "fifo"), 0640);
  CHECK_EQUAL(fchmod(f, 04755), 0);
  CHECK_EQUAL(mode(d, "f"), 04755);
  CHECK_EQUAL(fchmodat(d, "f", 0400, 0), 0);
  CHECK_EQUAL(mode(d, "f"), 0400);
  CHECK_EQUAL(faccessat(d, "f", R_OK, 0), 0);
  FAILS(faccessat(d, "f", X_OK, AT_EACCESS), EACCES);
  FAILS(faccessat(d, "nothing", F_OK, 0), ENOENT);
  FAILS(faccessat(d, "f", 99, 0), EINVAL);
  CHECK_EQUAL(fchown(f, getuid(), (gid_t)-1), 0);
  CHECK_EQUAL(fchownat(d, "sub", (uid_t)-1, getgid(), 0), 0);
  FAILS(access("/tmp/not/there", F_OK), ENOENT);
  if (geteuid() != 0) {
    FAILS(fchown(f, 0, 0), EPERM);
    FAILS(faccessat(d, "f", W_OK, 0), EACCES);
    FAILS(openat(d, "f", O_WRONLY), EACCES);
    FAILS(chmod("/", 0700), EPERM);
  } else {
    struct stat s;
    CHECK_EQUAL(fchown(f, 1234, 4321), 0);
    CHECK_EQUAL(fstat(f, &s), 0);
    CHECK(s.st_uid == 1234 && s.st_gid == 4321);
  }
  CHECK_EQUAL(unlinkat(d, "f", 0), 0);
  CHECK_EQUAL(unlinkat(d, "fifo", 0), 0);
  CHECK_EQUAL(unlinkat(d, "sub", AT_REMOVEDIR), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
