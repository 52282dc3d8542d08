// SPDX-License-Identifier: Apache-2.0
// Standard output at a terminal is written line by line, and a prompt before standard input is
// read.
#include "../terminal.h"

int main(void) {
  int master;
  const pid_t pid = forkpty(&master, NULL, NULL, NULL);
  CHECK(pid >= 0);
  if (pid == 0) {
    char b[32];
    printf("a line\n");
    printf("prompt: ");
    CHECK(fgets(b, sizeof b, stdin) != NULL);
    printf("answer %s", b);
    pause();
  }
  expect(master, "a line\r\nprompt: ");
  type(master, "yes\n");
  expect(master, "answer yes\r\n");
  CHECK_EQUAL(kill(pid, SIGKILL), 0);
  CHECK_EQUAL(WTERMSIG(status_of_child(pid)), SIGKILL);
  return succeed();
}
