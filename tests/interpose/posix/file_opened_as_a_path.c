// SPDX-License-Identifier: Apache-2.0
// A descriptor of O_PATH names a file without opening it: no read or write, but fstat, openat under
// it, and opening it again, also of a symbolic link itself.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char dir[] = "/tmp/pathXXXXXX", name[64], b[16];
  struct stat s;
  CHECK(mkdtemp(dir) != NULL);
  const int d = open(dir, O_PATH | O_CLOEXEC);
  CHECK_EQUAL(fcntl(d, F_GETFL) & O_PATH, O_PATH);
  CHECK_EQUAL(fcntl(d, F_GETFD), FD_CLOEXEC);
  const int f = openat(d, "f", O_CREAT | O_RDWR, 0600);
  CHECK_EQUAL(write(f, "abc", 3), 3);
  CHECK_EQUAL(symlinkat("f", d, "l"), 0);
  const int p = openat(d, "f", O_PATH);
  FAILS(read(p, b, 1), EBADF);
  FAILS(write(p, b, 1), EBADF);
  FAILS(ftruncate(p, 0), EBADF);
  FAILS(fchmod(p, 0600), EBADF);
  FAILS(lseek(p, 0, SEEK_SET), EBADF);
  CHECK_EQUAL(fstat(p, &s), 0);
  CHECK_EQUAL(s.st_size, 3);
  CHECK_EQUAL(fstatat(p, "", &s, AT_EMPTY_PATH), 0);
  snprintf(name, sizeof name, "/proc/self/fd/%d", p);
  const int again = open(name, O_RDONLY);
  CHECK_EQUAL(read(again, b, sizeof b), 3);
  const int l = openat(d, "l", O_PATH | O_NOFOLLOW);
  CHECK_EQUAL(fstat(l, &s), 0);
  CHECK(S_ISLNK(s.st_mode));
  CHECK_EQUAL(readlinkat(l, "", b, sizeof b), 1);
  CHECK_EQUAL(b[0], 'f');
  CHECK_EQUAL(fchdir(d), 0);
  CHECK_EQUAL(unlink("f"), 0);
  CHECK_EQUAL(unlink("l"), 0);
  CHECK_EQUAL(chdir("/"), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
