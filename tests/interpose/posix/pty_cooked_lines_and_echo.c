// SPDX-License-Identifier: Apache-2.0
// In canonical mode a terminal returns whole lines, after erase and kill, echoes input, and turns
// the end-of-file character into an end.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pty.h>
#include <termios.h>

#include "../small.h"

static int master, line;

static void type(const char* text) {
  const ssize_t n = (ssize_t)strlen(text);
  CHECK_EQUAL(write(master, text, (size_t)n), n);
}

static void expect(int fd, const char* text) {
  char b[64];
  size_t done = 0;
  while (done < strlen(text)) {
    const ssize_t n = read(fd, b + done, strlen(text) - done);
    CHECK(n > 0);
    done += (size_t)n;
  }
  CHECK_EQUAL(memcmp(b, text, done), 0);
}

int main(void) {
  char b[64];
  struct termios t;
  CHECK_EQUAL(openpty(&master, &line, NULL, NULL, NULL), 0);
  CHECK_EQUAL(tcgetattr(line, &t), 0);
  CHECK_EQUAL(t.c_lflag & (ICANON | ECHO | ISIG), ICANON | ECHO | ISIG);
  type("ab");
  expect(master, "ab");
  type("\n");
  expect(master, "\r\n");
  CHECK_EQUAL(read(line, b, 2), 2);
  CHECK_EQUAL(read(line, b, sizeof b), 1);
  t.c_lflag &= (tcflag_t)~ECHO;
  CHECK_EQUAL(tcsetattr(line, TCSANOW, &t), 0);
  type("one\ntwo\n");
  CHECK_EQUAL(read(line, b, sizeof b), 4);
  CHECK_EQUAL(memcmp(b, "one\n", 4), 0);
  CHECK_EQUAL(read(line, b, sizeof b), 4);
  const char wrong[] = {'x', 'y', (char)t.c_cc[VERASE], 'z', '\n', 0};
  type(wrong);
  CHECK_EQUAL(read(line, b, sizeof b), 3);
  CHECK_EQUAL(memcmp(b, "xz\n", 3), 0);
  const char killed[] = {'x', 'y', (char)t.c_cc[VKILL], 'o', 'k', '\n', 0};
  type(killed);
  CHECK_EQUAL(read(line, b, sizeof b), 3);
  const char end[] = {'q', (char)t.c_cc[VEOF], (char)t.c_cc[VEOF], 0};
  type(end);
  CHECK_EQUAL(read(line, b, sizeof b), 1);
  CHECK_EQUAL(read(line, b, sizeof b), 0);
  CHECK_EQUAL(write(line, "out\n", 4), 4);
  expect(master, "out\r\n");
  return succeed();
}
