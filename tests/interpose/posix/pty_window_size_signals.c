// SPDX-License-Identifier: Apache-2.0
// A new window size sends SIGWINCH to the foreground group; the same size does not.
#include "../terminal.h"

static volatile sig_atomic_t changes = 0;
static void count(int signo) {
  (void)signo;
  ++changes;
}

static void child(void) {
  struct winsize size;
  char b[8];
  sigset_t none;
  sigemptyset(&none);
  block_signal(SIGWINCH);
  handle(SIGWINCH, count, 0);
  type_text(1, "ready\n");
  CHECK_EQUAL(sigsuspend(&none), -1);
  CHECK_EQUAL(ioctl(0, TIOCGWINSZ, &size), 0);
  CHECK_EQUAL(size.ws_row, 40);
  CHECK_EQUAL(size.ws_col, 132);
  type_text(1, "resized\n");
  CHECK_EQUAL(read(0, b, sizeof b), 2);
  CHECK_EQUAL(changes, 1);
  _exit(0);
}

int main(void) {
  int master;
  struct winsize size = {24, 80, 0, 0};
  const pid_t pid = forkpty(&master, NULL, NULL, &size);
  CHECK(pid >= 0);
  if (pid == 0) child();
  expect(master, "ready\r\n");
  CHECK_EQUAL(ioctl(master, TIOCSWINSZ, &size), 0);
  size.ws_row = 40;
  size.ws_col = 132;
  CHECK_EQUAL(ioctl(master, TIOCSWINSZ, &size), 0);
  expect(master, "resized\r\n");
  CHECK_EQUAL(ioctl(master, TIOCSWINSZ, &size), 0);
  type(master, "x\n");
  CHECK_EQUAL(status_of_child(pid), 0);
  return succeed();
}
