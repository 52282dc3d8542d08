// SPDX-License-Identifier: Apache-2.0
// TIOCSTI inserts bytes into a terminal's input as if typed, with echo; a kernel may refuse it.
#include "../terminal.h"

int main(void) {
  int master, line;
  char b[16];
  open_pair(&master, &line);
  type(master, "ty");
  expect(master, "ty");
  int refused = 0;
  for (const char* c = "ped\n"; *c != '\0' && !refused; ++c) {
    refused = ioctl(line, TIOCSTI, c) != 0;
    CHECK(!refused || errno == EIO || errno == EPERM);
  }
  if (refused) return succeed();
  expect(master, "ped\r\n");
  CHECK_EQUAL(read(line, b, sizeof b), 6);
  CHECK_EQUAL(memcmp(b, "typed\n", 6), 0);
  return succeed();
}
