// SPDX-License-Identifier: Apache-2.0
// In the background of a terminal, a read fails with EIO if a stop would be permanent, or if
// SIGTTIN is ignored or blocked; a write is stopped only with TOSTOP.
#include "../terminal.h"

static void background(void) {
  char b[8];
  struct termios t;
  signal(SIGTTIN, SIG_IGN);
  CHECK_EQUAL(read(0, b, sizeof b), -1);
  CHECK_EQUAL(errno, EIO);
  signal(SIGTTIN, SIG_DFL);
  block_signal(SIGTTIN);
  CHECK_EQUAL(read(0, b, sizeof b), -1);
  CHECK_EQUAL(errno, EIO);
  type_text(1, "quiet\n");
  signal(SIGTTOU, SIG_IGN);
  CHECK_EQUAL(tcgetattr(0, &t), 0);
  t.c_lflag |= TOSTOP;
  CHECK_EQUAL(tcsetattr(0, TCSANOW, &t), 0);
  type_text(1, "ignored\n");
  CHECK_EQUAL(tcsetpgrp(0, getpgrp()), 0);
  _exit(0);
}

static void orphan(void) {
  char b[8];
  CHECK_EQUAL(setpgid(0, 0), 0);
  CHECK_EQUAL(read(0, b, sizeof b), -1);
  CHECK_EQUAL(errno, EIO);
  type_text(1, "orphaned\n");
  _exit(0);
}

static void leader(void) {
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    setpgid(0, 0);
    background();
  }
  CHECK_EQUAL(status_of_child(pid), 0);
  signal(SIGTTOU, SIG_IGN);
  CHECK_EQUAL(tcsetpgrp(0, getpgrp()), 0);
  // A child whose parent is now init: no process of its session could continue it.
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    const pid_t parent = getpid();
    if (fork() != 0) _exit(0);
    while (getppid() == parent) sched_yield();
    orphan();
  }
  CHECK_EQUAL(status_of_child(pid), 0);
  char b[8];
  CHECK_EQUAL(read(0, b, sizeof b), 2);
  _exit(0);
}

int main(void) {
  int master;
  const pid_t pid = forkpty(&master, NULL, NULL, NULL);
  CHECK(pid >= 0);
  if (pid == 0) leader();
  expect(master, "quiet\r\n");
  expect(master, "ignored\r\n");
  expect(master, "orphaned\r\n");
  type(master, "x\n");
  CHECK_EQUAL(status_of_child(pid), 0);
  return succeed();
}
