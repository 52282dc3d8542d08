// SPDX-License-Identifier: Apache-2.0
// shm_open and shm_unlink: invalid names, existing and missing ones, modes, and the size set by
// ftruncate.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../small.h"

static void not_opened(const char* name, int flags, int error) {
  CHECK_EQUAL(shm_open(name, flags, 0600), -1);
  CHECK_EQUAL(errno, error);
}

int main(void) {
  char name[80], long_name[300] = "/";
  memset(long_name + 1, 'n', 280);
  snprintf(name, sizeof name, "/shm_open_names-%d", getpid());
  not_opened("", O_RDWR | O_CREAT, EINVAL);
  not_opened("/", O_RDWR | O_CREAT, EINVAL);
  not_opened("/a/b", O_RDWR | O_CREAT, EINVAL);
  not_opened(name, O_RDWR, ENOENT);
  CHECK_EQUAL(shm_open(long_name, O_RDWR | O_CREAT, 0600), -1);
  umask(022);
  const int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0666);
  CHECK(fd >= 0);
  CHECK_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
  not_opened(name, O_RDWR | O_CREAT | O_EXCL, EEXIST);
  struct stat s;
  CHECK_EQUAL(fstat(fd, &s), 0);
  CHECK_EQUAL(s.st_size, 0);
  CHECK_EQUAL(s.st_mode & 0777, 0644);
  CHECK_EQUAL(ftruncate(fd, 8192), 0);
  char* first = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(first != MAP_FAILED);
  const int again = shm_open(name + 1, O_RDONLY, 0);
  CHECK(again >= 0);
  char* second = mmap(NULL, 8192, PROT_READ, MAP_SHARED, again, 0);
  CHECK(second != MAP_FAILED);
  strcpy(first + 5000, "here");
  CHECK_EQUAL(strcmp(second + 5000, "here"), 0);
  CHECK(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED);
  CHECK_EQUAL(errno, EACCES);
  CHECK_EQUAL(shm_unlink(name), 0);
  CHECK_EQUAL(shm_unlink(name), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(strcmp(second + 5000, "here"), 0);
  return succeed();
}
