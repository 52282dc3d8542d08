// SPDX-License-Identifier: Apache-2.0
// socketpair of a family that does not exist fails with EAFNOSUPPORT.
#define _GNU_SOURCE
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int s[2];
  CHECK_EQUAL(socketpair(999, SOCK_STREAM, 0, s), -1);
  CHECK_EQUAL(errno, EAFNOSUPPORT);
  CHECK_EQUAL(socketpair(-1, SOCK_STREAM, 0, s), -1);
  CHECK_EQUAL(errno, EAFNOSUPPORT);
  return succeed();
}
