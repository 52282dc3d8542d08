// SPDX-License-Identifier: Apache-2.0
// A shell on a new terminal: it knows the terminal's name, reads a typed line, and ends.
#include "../terminal.h"

int main(void) {
  int master;
  char name[64], wanted[80];
  const struct winsize size = {31, 97, 0, 0};
  const pid_t pid = forkpty(&master, name, NULL, &size);
  CHECK(pid >= 0);
  if (pid == 0) {
    execl("/bin/sh", "sh", "-c", "tty; stty size; read word; echo got $word; exit 5", NULL);
    _exit(127);
  }
  CHECK_EQUAL(strcmp(name, ptsname(master)), 0);
  snprintf(wanted, sizeof wanted, "%s\r\n", name);
  expect(master, wanted);
  expect(master, "31 97\r\n");
  type(master, "hellp\x7fo there\n");
  expect(master, "hellp\b \bo there\r\n");
  expect(master, "got hello there\r\n");
  CHECK_EQUAL(WEXITSTATUS(status_of_child(pid)), 5);
  char b[16];
  CHECK_EQUAL(read(master, b, sizeof b), -1);
  CHECK_EQUAL(errno, EIO);
  return succeed();
}
