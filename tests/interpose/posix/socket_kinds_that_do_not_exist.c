// SPDX-License-Identifier: Apache-2.0
// socket's errors: an unknown kind, a protocol of another kind, an unknown family.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  CHECK(socket(999, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT);
  CHECK(socket(AF_INET, 77, 0) == -1 && errno == EINVAL);
  CHECK(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP) == -1 && errno == EPROTONOSUPPORT);
  CHECK(socket(AF_UNIX, SOCK_STREAM, 77) == -1 && errno == EPROTONOSUPPORT);
  return succeed();
}
