// SPDX-License-Identifier: Apache-2.0
// fdopendir takes over a directory's descriptor; files and closed numbers are refused; a removed
// directory is empty and accepts no new names.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

int main(void) {
  char dir[] = "/tmp/fddirXXXXXX", b[128];
  CHECK(mkdtemp(dir) != NULL);
  const int fd = open(dir, O_RDONLY | O_DIRECTORY);
  CHECK(read(fd, b, 1) == -1 && errno == EISDIR);
  const int null = open("/dev/null", O_RDONLY);
  CHECK(fdopendir(null) == NULL && errno == ENOTDIR);
  CHECK(fdopendir(77) == NULL && errno == EBADF);
  CHECK(opendir("/not/there") == NULL && errno == ENOENT);
  CHECK(opendir("/dev/null") == NULL && errno == ENOTDIR);
  CHECK(opendir("") == NULL && errno == ENOENT);
  DIR* const d = fdopendir(fd);
  CHECK_EQUAL(dirfd(d), fd);
  int names = 0;
  for (const struct dirent* e; (e = readdir(d)) != NULL; ++names) CHECK_EQUAL(e->d_name[0], '.');
  CHECK_EQUAL(names, 2);
  CHECK_EQUAL(chdir(dir), 0);
  CHECK(getcwd(b, sizeof b) != NULL);
  CHECK_EQUAL(strcmp(b, dir), 0);
  CHECK(getcwd(b, 3) == NULL && errno == ERANGE);
  CHECK_EQUAL(rmdir(dir), 0);
  CHECK(openat(fd, "x", O_CREAT | O_RDWR, 0600) == -1 && errno == ENOENT);
  CHECK(getcwd(b, sizeof b) == NULL && errno == ENOENT);
  rewinddir(d);
  CHECK(readdir(d) == NULL);
  CHECK_EQUAL(closedir(d), 0);
  CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
  return succeed();
}
