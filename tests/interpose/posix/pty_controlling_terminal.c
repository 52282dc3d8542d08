// SPDX-License-Identifier: Apache-2.0
// /dev/tty is the session's terminal, once it has one: by an open without O_NOCTTY, or by
// TIOCSCTTY; TIOCNOTTY releases it.
#include "../terminal.h"

static void with_new_session(const char* name, int master) {
  struct winsize size;
  CHECK(setsid() >= 0);
  CHECK_EQUAL(open("/dev/tty", O_RDWR), -1);
  CHECK_EQUAL(errno, ENXIO);
  const int quiet = open(name, O_RDWR | O_NOCTTY);
  CHECK(quiet >= 0);
  CHECK_EQUAL(open("/dev/tty", O_RDWR), -1);
  CHECK_EQUAL(tcgetpgrp(quiet), -1);
  CHECK_EQUAL(errno, ENOTTY);
  const int line = open(name, O_RDWR);
  CHECK(line >= 0);
  CHECK_EQUAL(tcgetpgrp(line), getpgrp());
  CHECK_EQUAL(tcgetpgrp(master), getpgrp());
  CHECK_EQUAL(tcgetsid(line), getpid());
  const int tty = open("/dev/tty", O_RDWR);
  CHECK(tty >= 0);
  CHECK_EQUAL(ioctl(tty, TIOCGWINSZ, &size), 0);
  CHECK_EQUAL(size.ws_col, 77);
  CHECK_EQUAL(strcmp(ttyname(tty), "/dev/tty"), 0);
  type_text(tty, "by tty\n");
  signal(SIGHUP, SIG_IGN);
  CHECK_EQUAL(ioctl(tty, TIOCNOTTY), 0);
  CHECK_EQUAL(open("/dev/tty", O_RDWR), -1);
  CHECK_EQUAL(errno, ENXIO);
  CHECK_EQUAL(ioctl(line, TIOCSCTTY, 0), 0);
  CHECK_EQUAL(tcgetsid(line), getpid());
  type_text(line, "done\n");
  _exit(0);
}

int main(void) {
  int master, line;
  char name[64];
  const struct winsize size = {10, 77, 0, 0};
  CHECK_EQUAL(openpty(&master, &line, name, NULL, &size), 0);
  CHECK_EQUAL(ioctl(line, TIOCNOTTY), -1);
  CHECK_EQUAL(errno, ENOTTY);
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) with_new_session(name, master);
  expect(master, "by tty\r\ndone\r\n");
  CHECK_EQUAL(status_of_child(pid), 0);
  return succeed();
}
