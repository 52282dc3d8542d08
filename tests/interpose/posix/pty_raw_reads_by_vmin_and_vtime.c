// SPDX-License-Identifier: Apache-2.0
// A raw read waits for VMIN bytes, for VTIME after the last byte, or for VTIME in total.
#include "../terminal.h"

static int master, line;

static void set(cc_t least, cc_t time) {
  struct termios t;
  CHECK_EQUAL(tcgetattr(line, &t), 0);
  t.c_cc[VMIN] = least;
  t.c_cc[VTIME] = time;
  CHECK_EQUAL(tcsetattr(line, TCSANOW, &t), 0);
}

static void* type_slowly(void* text) {
  for (const char* c = text; *c != '\0'; ++c) {
    sleep_ms(20);
    CHECK_EQUAL(write(master, c, 1), 1);
  }
  return NULL;
}

int main(void) {
  char b[16];
  open_pair(&master, &line);
  make_raw(line);
  set(0, 0);
  CHECK_EQUAL(read(line, b, sizeof b), 0);
  set(0, 1);
  CHECK_EQUAL(read(line, b, sizeof b), 0);
  set(3, 0);
  pthread_t t = start(type_slowly, "abc");
  CHECK_EQUAL(read(line, b, sizeof b), 3);
  CHECK_EQUAL(memcmp(b, "abc", 3), 0);
  join(t);
  t = start(type_slowly, "de");
  CHECK_EQUAL(read(line, b, 2), 2);  // no more than requested
  join(t);
  set(9, 2);
  t = start(type_slowly, "fg");
  CHECK_EQUAL(read(line, b, sizeof b), 2);
  CHECK_EQUAL(memcmp(b, "fg", 2), 0);
  join(t);
  // poll waits for VMIN too, if no time is set.
  set(2, 0);
  type(master, "h");
  int unread = 0;
  while (unread != 1) CHECK_EQUAL(ioctl(line, FIONREAD, &unread), 0);
  CHECK_EQUAL(events_of(line) & POLLIN, 0);
  type(master, "i");
  await_events(line, POLLIN);
  CHECK_EQUAL(read(line, b, sizeof b), 2);
  return succeed();
}
