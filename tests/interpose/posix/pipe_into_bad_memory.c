// SPDX-License-Identifier: Apache-2.0
// pipe and socketpair with invalid memory: EFAULT, and no descriptor is left open.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int* nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(nowhere != MAP_FAILED);
  const int next = dup(0);
  CHECK_EQUAL(close(next), 0);
  CHECK_EQUAL(pipe(nowhere), -1);
  CHECK_EQUAL(errno, EFAULT);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, nowhere), -1);
  CHECK_EQUAL(errno, EFAULT);
  CHECK_EQUAL(dup(0), next);
  return succeed();
}
