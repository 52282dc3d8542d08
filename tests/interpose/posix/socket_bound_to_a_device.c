// SPDX-License-Identifier: Apache-2.0
// SO_BINDTODEVICE sets an interface, reads back and is cleared by an empty name; a missing
// interface fails with ENODEV.
#define _GNU_SOURCE
#include <net/if.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  char name[IF_NAMESIZE] = "?";
  socklen_t n = sizeof name;
  const int s = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, name, &n), 0);
  CHECK_EQUAL(n, 0);
  CHECK(setsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, "nothing", 8) == -1 && errno == ENODEV);
  CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3), 0);
  n = sizeof name;
  CHECK_EQUAL(getsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, name, &n), 0);
  CHECK(n == 3 && strcmp(name, "lo") == 0);
  if (geteuid() == 0) CHECK_EQUAL(setsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, "", 0), 0);
  return succeed();
}
