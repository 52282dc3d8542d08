// SPDX-License-Identifier: Apache-2.0
// tcsetattr and tcgetattr: modes, characters and speeds read back at both sides; a descriptor that
// is not a terminal fails with ENOTTY.
#define _GNU_SOURCE
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  int master, line, fds[2];
  struct termios t, r;
  CHECK_EQUAL(openpty(&master, &line, NULL, NULL, NULL), 0);
  CHECK_EQUAL(tcgetattr(line, &t), 0);
  CHECK_EQUAL(t.c_cc[VINTR], 3);
  CHECK_EQUAL(t.c_cc[VEOF], 4);
  CHECK_EQUAL(t.c_oflag & (OPOST | ONLCR), OPOST | ONLCR);
  CHECK_EQUAL(cfgetospeed(&t), B38400);
  cfmakeraw(&t);
  t.c_cc[VMIN] = 7;
  t.c_cc[VTIME] = 9;
  t.c_cc[VINTR] = 'i';
  CHECK_EQUAL(cfsetspeed(&t, B9600), 0);
  CHECK_EQUAL(tcsetattr(line, TCSADRAIN, &t), 0);
  CHECK_EQUAL(tcgetattr(master, &r), 0);
  CHECK_EQUAL(r.c_lflag & (ICANON | ECHO | ISIG), 0);
  CHECK_EQUAL(r.c_cc[VMIN], 7);
  CHECK_EQUAL(r.c_cc[VTIME], 9);
  CHECK_EQUAL(r.c_cc[VINTR], 'i');
  CHECK_EQUAL(cfgetispeed(&r), B9600);
  FAILS(tcsetattr(line, 77, &t), EINVAL);
  FAILS(cfsetospeed(&t, 12345), EINVAL);
  CHECK_EQUAL(pipe(fds), 0);
  FAILS(tcgetattr(fds[0], &t), ENOTTY);
  FAILS(tcsetattr(fds[0], TCSANOW, &t), ENOTTY);
  CHECK_EQUAL(isatty(fds[0]), 0);
  CHECK_EQUAL(errno, ENOTTY);
  CHECK_EQUAL(isatty(-1), 0);
  CHECK_EQUAL(errno, EBADF);
  CHECK(ttyname(fds[0]) == NULL);
  CHECK_EQUAL(errno, ENOTTY);
  struct winsize w;
  FAILS(ioctl(fds[0], TIOCGWINSZ, &w), ENOTTY);
  FAILS(tcgetattr(-1, &t), EBADF);
  return succeed();
}
