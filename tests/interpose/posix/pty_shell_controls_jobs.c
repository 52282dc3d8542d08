// SPDX-License-Identifier: Apache-2.0
// An interactive shell with job control: a job is interrupted, suspended, brought to the foreground
// and ended by a typed end of file.
#include "../terminal.h"

int main(void) {
  int master;
  const pid_t pid = forkpty(&master, NULL, NULL, NULL);
  CHECK(pid >= 0);
  if (pid == 0) {
    setenv("PS1", "READY> ", 1);
    unsetenv("ENV");
    execl("/bin/sh", "sh", "-i", NULL);
    _exit(127);
  }
  expect(master, "READY> ");
  type(master, "cat\n");
  expect(master, "cat\r\n");
  type(master, "echoed\n");
  expect(master, "echoed\r\nechoed\r\n");
  type(master, "\x03");
  expect(master, "READY> ");
  type(master, "cat; echo status $?\n");
  expect(master, "$?\r\n");
  type(master, "word\n");
  expect(master, "word\r\nword\r\n");
  type(master, "\x1a");
  expect(master, "READY> ");
  type(master, "fg\n");
  expect(master, "cat\r\n");
  type(master, "more\n");
  expect(master, "more\r\nmore\r\n");
  type(master, "\x04");
  expect(master, "READY> ");
  type(master, "exit 9\n");
  CHECK_EQUAL(WEXITSTATUS(status_of_child(pid)), 9);
  return succeed();
}
