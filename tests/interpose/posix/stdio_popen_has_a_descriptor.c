// SPDX-License-Identifier: Apache-2.0
// The stream of popen has a descriptor: fileno returns it, poll waits for it, and "e" marks it
// close-on-exec.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>

#include "../small.h"

int main(void) {
  char b[16];
  FILE* f = popen("echo text", "r");
  CHECK(f != NULL);
  CHECK(fileno(f) > 2);
  CHECK_EQUAL(fcntl(fileno(f), F_GETFD), 0);
  struct pollfd p = {fileno(f), POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, -1), 1);
  CHECK_EQUAL(p.revents & POLLIN, POLLIN);
  CHECK_EQUAL(read(fileno(f), b, sizeof b), 5);
  CHECK_EQUAL(pclose(f), 0);
  f = popen("true", "re");
  CHECK_EQUAL(fcntl(fileno(f), F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(pclose(f), 0);
  return succeed();
}
