// SPDX-License-Identifier: Apache-2.0
// When the session leader ends, the foreground group gets SIGHUP and no process has a controlling
// terminal any more; the terminal itself continues for processes that have it open.
#include "../terminal.h"

static volatile sig_atomic_t hang_ups = 0;
static void count(int signo) {
  (void)signo;
  ++hang_ups;
}

static void job(void) {
  char b[8];
  sigset_t none;
  sigemptyset(&none);
  block_signal(SIGHUP);
  handle(SIGHUP, count, 0);
  type_text(1, "job\n");
  CHECK_EQUAL(sigsuspend(&none), -1);
  CHECK_EQUAL(hang_ups, 1);
  CHECK_EQUAL(open("/dev/tty", O_RDWR), -1);
  CHECK_EQUAL(errno, ENXIO);
  CHECK_EQUAL(tcgetpgrp(0), -1);
  CHECK_EQUAL(errno, ENOTTY);
  type_text(1, "still there\n");
  CHECK_EQUAL(read(0, b, sizeof b), 2);
  _exit(0);
}

static void leader(void) {
  signal(SIGTTOU, SIG_IGN);
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    setpgid(0, 0);
    CHECK_EQUAL(tcsetpgrp(0, getpgrp()), 0);
    job();
  }
  setpgid(pid, pid);
  for (;;) pause();
}

// The terminal gets another session.
static void successor(const char* name) {
  CHECK(setsid() >= 0);
  const int line = open(name, O_RDWR);
  CHECK(line >= 0);
  CHECK_EQUAL(tcgetsid(line), getpid());
  type_text(line, "successor\n");
  _exit(0);
}

int main(void) {
  int master;
  char b[8], name[64];
  pid_t pid = forkpty(&master, name, NULL, NULL);
  CHECK(pid >= 0);
  if (pid == 0) leader();
  expect(master, "job\r\n");
  CHECK_EQUAL(kill(pid, SIGTERM), 0);
  CHECK_EQUAL(WTERMSIG(status_of_child(pid)), SIGTERM);
  expect(master, "still there\r\n");
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) successor(name);
  expect(master, "successor\r\n");
  CHECK_EQUAL(status_of_child(pid), 0);
  type(master, "x\n");
  expect(master, "x\r\n");
  CHECK_EQUAL(read(master, b, sizeof b), -1);
  CHECK_EQUAL(errno, EIO);
  return succeed();
}
