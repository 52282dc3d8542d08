// SPDX-License-Identifier: Apache-2.0
// fsync and fdatasync with the profile's agreed detachment: callers leave the schedule and rejoin;
// errors and errno are the kernel's.
//
// solo: --detach-sync
#include <fcntl.h>
#include <pthread.h>

#include "check.h"

static void* writer(void* name) {
  const int fd = open((const char*)name, O_CREAT | O_RDWR | O_TRUNC, 0600);
  CHECK(fd >= 0);
  for (int i = 0; i < 5; ++i) {
    CHECK(write(fd, "x", 1) == 1);
    CHECK((i % 2 != 0 ? fsync(fd) : fdatasync(fd)) == 0);
  }
  close(fd);
  unlink((const char*)name);
  return NULL;
}

int main(void) {
  char names[2][64];
  pthread_t t[2];
  for (int i = 0; i < 2; ++i) {
    snprintf(names[i], sizeof names[i], "/tmp/detached_calls.%d.%d", (int)getpid(), i);
    CHECK(pthread_create(&t[i], NULL, writer, names[i]) == 0);
  }
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  errno = 0;
  CHECK(fsync(-1) == -1 && errno == EBADF);
  errno = 7;
  const int fd = open("/tmp", O_RDONLY | O_DIRECTORY);
  CHECK(fsync(fd) == 0);
  return succeed();
}
