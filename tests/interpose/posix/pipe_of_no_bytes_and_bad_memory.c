// SPDX-License-Identifier: Apache-2.0
// Reads and writes of no bytes do nothing, even on an empty or broken pipe; invalid memory is
// EFAULT and loses no bytes.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char b[8];
  signal(SIGPIPE, SIG_IGN);
  char* nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(nowhere != MAP_FAILED);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(write(fds[1], b, 0), 0);
  CHECK_EQUAL(read(fds[0], b, 0), 0);
  CHECK_EQUAL(write(fds[1], nowhere, 5), -1);
  CHECK_EQUAL(errno, EFAULT);
  CHECK_EQUAL(write(fds[1], "abc", 3), 3);
  CHECK_EQUAL(read(fds[0], nowhere, 5), -1);
  CHECK_EQUAL(errno, EFAULT);
  CHECK_EQUAL(read(fds[0], b, 5), 3);
  CHECK_EQUAL(memcmp(b, "abc", 3), 0);
  CHECK_EQUAL(close(fds[0]), 0);
  CHECK_EQUAL(write(fds[1], b, 0), 0);
  CHECK_EQUAL(write(fds[1], b, 1), -1);
  CHECK_EQUAL(errno, EPIPE);
  return succeed();
}
