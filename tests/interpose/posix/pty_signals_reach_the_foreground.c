// SPDX-License-Identifier: Apache-2.0
// Typed VINTR, VQUIT and VSUSP become signals for the foreground group; earlier input on the line
// is discarded.
#include "../terminal.h"

static volatile sig_atomic_t interrupts = 0;
static void count(int signo) {
  (void)signo;
  ++interrupts;
  type_text(1, "interrupted\n");
}

static void child(void) {
  char b[32];
  handle(SIGINT, count, SA_RESTART);
  type_text(1, "ready\n");
  const ssize_t n = read(0, b, sizeof b);
  CHECK_EQUAL(n, 5);
  CHECK_EQUAL(memcmp(b, "left\n", 5), 0);
  CHECK_EQUAL(interrupts, 1);
  type_text(1, "took the line\n");
  // Because no shell could continue it, the group is orphaned and does not stop.
  for (;;) pause();
}

int main(void) {
  int master;
  const pid_t pid = forkpty(&master, NULL, NULL, NULL);
  CHECK(pid >= 0);
  if (pid == 0) child();
  expect(master, "ready\r\n");
  type(master, "gone\x03");
  expect(master, "interrupted\r\n");
  type(master, "left\n");
  expect(master, "took the line\r\n");
  type(master, "\x1c");
  const int status = status_of_child(pid);
  CHECK(WIFSIGNALED(status));
  CHECK_EQUAL(WTERMSIG(status), SIGQUIT);
  return succeed();
}
