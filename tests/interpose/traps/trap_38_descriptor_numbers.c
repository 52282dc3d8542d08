// SPDX-License-Identifier: Apache-2.0
// Descriptors get the lowest free number, as if only the program had any.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int fds[2];
  closefrom(3);
  CHECK_EQUAL(open("/dev/null", O_RDONLY), 3);
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(fds[0], 4);
  CHECK_EQUAL(fds[1], 5);
  CHECK_EQUAL(socket(AF_INET, SOCK_STREAM, 0), 6);
  CHECK_EQUAL(dup(3), 7);
  close(4);
  CHECK_EQUAL(fcntl(3, F_DUPFD, 0), 4);
  CHECK_EQUAL(fcntl(3, F_DUPFD, 20), 20);
  CHECK_EQUAL(dup2(3, 8), 8);
  CHECK_EQUAL(open("/dev/null", O_RDONLY), 9);
  return succeed();
}
