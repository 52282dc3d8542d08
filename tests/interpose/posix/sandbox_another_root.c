// SPDX-License-Identifier: Apache-2.0
// chroot is for root only: the directory is a child's root, paths begin there and ".." ends there;
// the parent's root is unchanged.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  if (geteuid() != 0) {
    CHECK(chroot("/tmp") == -1 && errno == EPERM);
    return succeed();
  }
  char dir[] = "/tmp/rootXXXXXX", b[64];
  CHECK(mkdtemp(dir) != NULL);
  CHECK(chroot("/not/there") == -1 && errno == ENOENT);
  CHECK(chroot("/etc/passwd") == -1 && errno == ENOTDIR);
  const pid_t child = fork();
  if (child == 0) {
    if (chroot(dir) != 0 || chdir("/") != 0) _exit(1);
    if (getcwd(b, sizeof b) == NULL || strcmp(b, "/") != 0) _exit(2);
    if (open("/etc/passwd", O_RDONLY) >= 0 || errno != ENOENT) _exit(3);
    const int f = open("/../../f", O_CREAT | O_EXCL | O_RDWR, 0600);
    _exit(f >= 0 && access("/f", F_OK) == 0 ? 42 : 4);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  CHECK_EQUAL(chdir(dir), 0);
  CHECK_EQUAL(access("f", F_OK), 0);
  CHECK_EQUAL(unlink("f"), 0);
  CHECK_EQUAL(access("/etc/passwd", F_OK), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
