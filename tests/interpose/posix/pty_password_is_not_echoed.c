// SPDX-License-Identifier: Apache-2.0
// getpass prompts at the session's terminal, whatever the standard streams are, and echoes nothing.
#include "../terminal.h"

int main(void) {
  int master;
  const pid_t pid = forkpty(&master, NULL, NULL, NULL);
  CHECK(pid >= 0);
  if (pid == 0) {
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 2);
    const char* password = getpass("Password: ");
    CHECK(password != NULL);
    printf("it was %s.\n", password);
    fflush(stdout);
    _exit(0);
  }
  expect(master, "Password: ");
  type(master, "secret\n");
  expect(master, "\nit was secret.");
  CHECK_EQUAL(status_of_child(pid), 0);
  return succeed();
}
