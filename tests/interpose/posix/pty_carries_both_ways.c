// SPDX-License-Identifier: Apache-2.0
// A raw pseudo-terminal carries bytes unchanged in both directions; both sides are terminals; the
// line has the name that ptsname returns.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>

#include "../small.h"

int main(void) {
  char name[64], b[16];
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  CHECK(master >= 0);
  CHECK_EQUAL(grantpt(master), 0);
  CHECK_EQUAL(unlockpt(master), 0);
  CHECK_EQUAL(ptsname_r(master, name, sizeof name), 0);
  CHECK_EQUAL(strcmp(name, ptsname(master)), 0);
  CHECK_EQUAL(strncmp(name, "/dev/pts/", 9), 0);
  CHECK_EQUAL(ptsname_r(master, b, 3), ERANGE);
  const int line = open(name, O_RDWR | O_NOCTTY);
  CHECK(line >= 0);
  CHECK_EQUAL(isatty(line), 1);
  CHECK_EQUAL(isatty(master), 1);
  CHECK_EQUAL(strcmp(ttyname(line), name), 0);
  CHECK_EQUAL(ttyname_r(line, b, 3), ERANGE);
  struct stat s;
  CHECK_EQUAL(fstat(line, &s), 0);
  CHECK(S_ISCHR(s.st_mode));
  struct termios t;
  CHECK_EQUAL(tcgetattr(line, &t), 0);
  cfmakeraw(&t);
  CHECK_EQUAL(tcsetattr(line, TCSANOW, &t), 0);
  CHECK_EQUAL(write(master, "a\r\x03\n", 4), 4);
  CHECK_EQUAL(read(line, b, sizeof b), 4);
  CHECK_EQUAL(memcmp(b, "a\r\x03\n", 4), 0);
  CHECK_EQUAL(write(line, "x\ny", 3), 3);
  CHECK_EQUAL(read(master, b, sizeof b), 3);
  CHECK_EQUAL(memcmp(b, "x\ny", 3), 0);
  return succeed();
}
