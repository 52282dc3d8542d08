// SPDX-License-Identifier: Apache-2.0
// F_SETOWN, F_SETOWN_EX and F_SETSIG read back, for pipes and sockets.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int s[2];
  setpgid(0, 0);  // also if the group is one from outside
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(fcntl(s[0], F_GETOWN), 0);
  CHECK_EQUAL(fcntl(s[0], F_GETSIG), 0);
  CHECK_EQUAL(fcntl(s[0], F_SETOWN, getpid()), 0);
  CHECK_EQUAL(fcntl(s[0], F_GETOWN), getpid());
  struct f_owner_ex x = {F_OWNER_TID, gettid()};
  CHECK_EQUAL(fcntl(s[0], F_SETOWN_EX, &x), 0);
  memset(&x, 0, sizeof x);
  CHECK_EQUAL(fcntl(s[0], F_GETOWN_EX, &x), 0);
  CHECK_EQUAL(x.type, F_OWNER_TID);
  CHECK_EQUAL(x.pid, gettid());
  CHECK_EQUAL(fcntl(s[0], F_SETOWN, -getpgrp()), 0);
  CHECK_EQUAL(fcntl(s[0], F_GETOWN_EX, &x), 0);
  CHECK_EQUAL(x.type, F_OWNER_PGRP);
  CHECK_EQUAL(x.pid, getpgrp());
  CHECK_EQUAL(fcntl(s[0], F_SETSIG, SIGUSR1), 0);
  CHECK_EQUAL(fcntl(s[0], F_GETSIG), SIGUSR1);
  CHECK_EQUAL(fcntl(s[0], F_SETSIG, 1000), -1);
  CHECK_EQUAL(errno, EINVAL);
  x.type = 17;
  CHECK_EQUAL(fcntl(s[0], F_SETOWN_EX, &x), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(fcntl(s[0], F_SETOWN, 0), 0);
  CHECK_EQUAL(fcntl(s[0], F_GETOWN), 0);
  return succeed();
}
