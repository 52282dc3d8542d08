// SPDX-License-Identifier: Apache-2.0
// tcflush, tcdrain, tcflow and tcsendbreak of a pseudo-terminal succeed; bad selectors fail with
// EINVAL, and a descriptor that is not a terminal fails with ENOTTY.
#define _GNU_SOURCE
#include <pty.h>
#include <termios.h>

#include "../small.h"

int main(void) {
  int master, line;
  struct termios t;
  CHECK_EQUAL(openpty(&master, &line, NULL, NULL, NULL), 0);
  CHECK_EQUAL(tcgetattr(line, &t), 0);
  cfmakeraw(&t);
  CHECK_EQUAL(tcsetattr(line, TCSANOW, &t), 0);
  CHECK_EQUAL(tcdrain(line), 0);
  CHECK_EQUAL(tcflow(line, TCOOFF), 0);
  CHECK_EQUAL(tcflow(line, TCOON), 0);
  CHECK_EQUAL(tcsendbreak(line, 0), 0);
  CHECK_EQUAL(tcflush(line, 77), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(tcflow(line, 77), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(tcflush(line, TCIOFLUSH), 0);
  int fds[2];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(tcflush(fds[0], TCIFLUSH), -1);
  CHECK_EQUAL(errno, ENOTTY);
  CHECK_EQUAL(tcdrain(fds[0]), -1);
  CHECK_EQUAL(errno, ENOTTY);
  return succeed();
}
