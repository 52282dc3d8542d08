// SPDX-License-Identifier: Apache-2.0
// When the last line is closed, the master reads the remaining bytes, then EIO; when the master is
// closed, the line is at its end and cannot write.
#define _GNU_SOURCE
#include <pty.h>
#include <termios.h>

#include "../small.h"

int main(void) {
  int master, line;
  char b[16];
  struct termios t;
  signal(SIGHUP, SIG_IGN);
  memset(&t, 0, sizeof t);
  CHECK_EQUAL(openpty(&master, &line, NULL, NULL, NULL), 0);
  CHECK_EQUAL(tcgetattr(line, &t), 0);
  cfmakeraw(&t);
  CHECK_EQUAL(tcsetattr(line, TCSANOW, &t), 0);
  CHECK_EQUAL(write(line, "last", 4), 4);
  CHECK_EQUAL(close(line), 0);
  CHECK_EQUAL(read(master, b, sizeof b), 4);
  CHECK_EQUAL(read(master, b, sizeof b), -1);
  CHECK_EQUAL(errno, EIO);
  CHECK_EQUAL(close(master), 0);
  CHECK_EQUAL(openpty(&master, &line, NULL, NULL, NULL), 0);
  CHECK_EQUAL(close(master), 0);
  CHECK_EQUAL(read(line, b, sizeof b), 0);
  CHECK_EQUAL(write(line, "x", 1), -1);
  CHECK_EQUAL(errno, EIO);
  return succeed();
}
