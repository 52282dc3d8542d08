// SPDX-License-Identifier: Apache-2.0
// A pseudo-terminal has the window size it was made with, which reads back at both sides.
#define _GNU_SOURCE
#include <pty.h>
#include <sys/ioctl.h>

#include "../small.h"

int main(void) {
  int master, line;
  struct winsize w = {25, 81, 3, 4}, r;
  CHECK_EQUAL(openpty(&master, &line, NULL, NULL, &w), 0);
  CHECK_EQUAL(ioctl(master, TIOCGWINSZ, &r), 0);
  CHECK_EQUAL(memcmp(&r, &w, sizeof w), 0);
  w.ws_row = 50;
  CHECK_EQUAL(ioctl(line, TIOCSWINSZ, &w), 0);
  CHECK_EQUAL(ioctl(master, TIOCGWINSZ, &r), 0);
  CHECK_EQUAL(r.ws_row, 50);
  return succeed();
}
