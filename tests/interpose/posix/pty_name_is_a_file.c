// SPDX-License-Identifier: Apache-2.0
// The line's name has a status, and can get a mode and an owner; descriptors report the same.
#include "../terminal.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

int main(void) {
  int master, line;
  char name[64], link[64], at[64];
  struct stat by_name, by_descriptor;
  CHECK_EQUAL(openpty(&master, &line, name, NULL, NULL), 0);
  CHECK_EQUAL(chmod(name, 0622), 0);
  CHECK_EQUAL(stat(name, &by_name), 0);
  CHECK_EQUAL(fstat(line, &by_descriptor), 0);
  CHECK(S_ISCHR(by_name.st_mode));
  CHECK_EQUAL(by_name.st_mode & 0777, 0622);
  CHECK_EQUAL(by_name.st_rdev, by_descriptor.st_rdev);
  CHECK_EQUAL(by_name.st_ino, by_descriptor.st_ino);
  CHECK_EQUAL(by_name.st_dev, by_descriptor.st_dev);
  CHECK_EQUAL(major(by_name.st_rdev), 136);
  CHECK_EQUAL(minor(by_name.st_rdev), (unsigned)atoi(name + 9));
  CHECK_EQUAL(fchmod(line, 0600), 0);
  CHECK_EQUAL(lstat(name, &by_name), 0);
  CHECK_EQUAL(by_name.st_mode & 0777, 0600);
  CHECK_EQUAL(chown(name, geteuid(), (gid_t)-1), 0);
  CHECK_EQUAL(access(name, R_OK | W_OK), 0);
  snprintf(link, sizeof link, "/proc/self/fd/%d", line);
  const ssize_t n = readlink(link, at, sizeof at);
  CHECK_EQUAL(n, (ssize_t)strlen(name));
  CHECK_EQUAL(memcmp(at, name, (size_t)n), 0);
  CHECK_EQUAL(ttyname_r(line, at, sizeof at), 0);
  CHECK_EQUAL(strcmp(at, name), 0);
  CHECK_EQUAL(fstat(master, &by_descriptor), 0);
  CHECK_EQUAL(by_descriptor.st_rdev, makedev(5, 2));
  return succeed();
}
