// SPDX-License-Identifier: Apache-2.0
// In packet mode each read of the master starts with a byte: data follows, or an event happened.
#include "../terminal.h"

static int packet(int master) {
  unsigned char b[64];
  CHECK(read(master, b, sizeof b) >= 1);
  return b[0];
}

int main(void) {
  int master, line, on = 1;
  char b[64];
  struct termios t;
  open_pair(&master, &line);
  CHECK_EQUAL(ioctl(master, TIOCPKT, &on), 0);
  type_text(line, "data");
  CHECK_EQUAL(read(master, b, sizeof b), 5);
  CHECK_EQUAL(memcmp(b, "\0data", 5), 0);
  CHECK_EQUAL(tcflush(line, TCIOFLUSH), 0);
  await_events(master, POLLPRI);
  CHECK_EQUAL(packet(master), TIOCPKT_FLUSHREAD | TIOCPKT_FLUSHWRITE);
  CHECK_EQUAL(tcflow(line, TCOOFF), 0);
  CHECK_EQUAL(packet(master), TIOCPKT_STOP);
  CHECK_EQUAL(tcflow(line, TCOON), 0);
  CHECK_EQUAL(packet(master), TIOCPKT_START);
  CHECK_EQUAL(tcgetattr(line, &t), 0);
  t.c_iflag &= ~(tcflag_t)IXON;
  CHECK_EQUAL(tcsetattr(line, TCSANOW, &t), 0);
  CHECK_EQUAL(packet(master), TIOCPKT_NOSTOP);
  t.c_iflag |= IXON;
  CHECK_EQUAL(tcsetattr(line, TCSANOW, &t), 0);
  CHECK_EQUAL(packet(master), TIOCPKT_DOSTOP);
  on = 0;
  CHECK_EQUAL(ioctl(master, TIOCPKT, &on), 0);
  type_text(line, "plain");
  CHECK_EQUAL(read(master, b, sizeof b), 5);
  return succeed();
}
