// SPDX-License-Identifier: Apache-2.0
// A shell of the terminal's session: VSUSP stops its foreground job, which continues when it is in
// the foreground again. In the background a read stops it, and so does a write with TOSTOP.
#include "../terminal.h"

static void job(void) {
  char b[32];
  type_text(1, "job\n");
  CHECK_EQUAL(read(0, b, sizeof b), 4);
  CHECK_EQUAL(memcmp(b, "one\n", 4), 0);
  type_text(1, "again\n");
  CHECK_EQUAL(read(0, b, sizeof b), 4);
  CHECK_EQUAL(memcmp(b, "two\n", 4), 0);
  raise(SIGSTOP);
  type_text(1, "loud\n");
  _exit(7);
}

static void put_in_front(pid_t group) { CHECK_EQUAL(tcsetpgrp(0, group), 0); }

static void expect_stop(pid_t pid, int signo) {
  int status;
  CHECK_EQUAL(waitpid(pid, &status, WUNTRACED), pid);
  CHECK(WIFSTOPPED(status));
  CHECK_EQUAL(WSTOPSIG(status), signo);
}

static void shell(void) {
  int status;
  signal(SIGTTOU, SIG_IGN);
  CHECK_EQUAL(tcgetpgrp(0), getpgrp());
  CHECK_EQUAL(tcgetsid(0), getsid(0));
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    setpgid(0, 0);
    put_in_front(getpgrp());
    signal(SIGTTOU, SIG_DFL);
    job();
  }
  setpgid(pid, pid);
  put_in_front(pid);
  expect_stop(pid, SIGTSTP);
  put_in_front(getpgrp());
  CHECK_EQUAL(kill(-pid, SIGCONT), 0);
  expect_stop(pid, SIGTTIN);
  put_in_front(pid);
  CHECK_EQUAL(kill(-pid, SIGCONT), 0);
  expect_stop(pid, SIGSTOP);
  put_in_front(getpgrp());
  struct termios t;
  CHECK_EQUAL(tcgetattr(0, &t), 0);
  t.c_lflag |= TOSTOP;
  CHECK_EQUAL(tcsetattr(0, TCSANOW, &t), 0);
  CHECK_EQUAL(kill(-pid, SIGCONT), 0);
  expect_stop(pid, SIGTTOU);
  put_in_front(pid);
  CHECK_EQUAL(kill(-pid, SIGCONT), 0);
  CHECK_EQUAL(waitpid(pid, &status, 0), pid);
  CHECK_EQUAL(WEXITSTATUS(status), 7);
  put_in_front(getpgrp());
  type_text(1, "shell\n");
  CHECK_EQUAL(tcsetpgrp(0, 1 << 22), -1);
  CHECK_EQUAL(errno, ESRCH);
  _exit(3);
}

int main(void) {
  int master;
  const pid_t pid = forkpty(&master, NULL, NULL, NULL);
  CHECK(pid >= 0);
  if (pid == 0) shell();
  expect(master, "job\r\n");
  type(master, "\x1a");
  expect(master, "^Z");
  type(master, "one\n");
  expect(master, "again\r\n");
  type(master, "two\n");
  expect(master, "loud\r\n");
  expect(master, "shell\r\n");
  CHECK_EQUAL(WEXITSTATUS(status_of_child(pid)), 3);
  return succeed();
}
