// SPDX-License-Identifier: Apache-2.0
// The line cannot be opened before unlockpt; TIOCGPTPEER opens it through the master; the number is
// in the name.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>

#include "../small.h"

int main(void) {
  char name[64], made[64];
  unsigned number;
  int locked = -1;
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  CHECK(master >= 0);
  CHECK_EQUAL(fcntl(master, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(ptsname_r(master, name, sizeof name), 0);
  CHECK_EQUAL(ioctl(master, TIOCGPTN, &number), 0);
  snprintf(made, sizeof made, "/dev/pts/%u", number);
  CHECK_EQUAL(strcmp(made, name), 0);
  CHECK_EQUAL(ioctl(master, TIOCGPTLCK, &locked), 0);
  CHECK_EQUAL(locked, 1);
  CHECK_EQUAL(open(name, O_RDWR | O_NOCTTY), -1);
  CHECK_EQUAL(errno, EIO);
  CHECK_EQUAL(unlockpt(master), 0);
  CHECK_EQUAL(ioctl(master, TIOCGPTLCK, &locked), 0);
  CHECK_EQUAL(locked, 0);
  const int peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
  CHECK(peer >= 0);
  CHECK_EQUAL(isatty(peer), 1);
  const int line = open(name, O_RDWR | O_NOCTTY);
  CHECK(line >= 0);
  CHECK_EQUAL(unlockpt(0), -1);
  CHECK_EQUAL(ptsname_r(0, name, sizeof name), ENOTTY);
  return succeed();
}
