// SPDX-License-Identifier: Apache-2.0
// When all descriptors of a terminal's line are closed, reads of the master return EIO until the
// line is opened again. Unread input stays for the next process that opens the line.
#include "../terminal.h"

int main(void) {
  char b[32];
  int master, line;
  open_pair(&master, &line);
  char name[64];
  CHECK_EQUAL(ptsname_r(master, name, sizeof name), 0);
  const int other = dup(line), second = open(name, O_RDWR | O_NOCTTY);
  CHECK(second >= 0);
  close(line);
  close(other);
  CHECK_EQUAL(events_of(master), POLLOUT);
  type_text(second, "last");
  close(second);
  CHECK_EQUAL(events_of(master) & POLLHUP, POLLHUP);
  CHECK_EQUAL(read(master, b, sizeof b), 4);
  CHECK_EQUAL(read(master, b, sizeof b), -1);
  CHECK_EQUAL(errno, EIO);
  type(master, "kept\n");
  line = open(name, O_RDWR | O_NOCTTY);
  CHECK(line >= 0);
  CHECK_EQUAL(read(line, b, sizeof b), 5);
  expect(master, "kept\r\n");
  close(master);
  CHECK_EQUAL(open(name, O_RDWR | O_NOCTTY), -1);
  CHECK(errno == EIO || errno == ENOENT);
  CHECK_EQUAL(read(line, b, sizeof b), 0);
  return succeed();
}
