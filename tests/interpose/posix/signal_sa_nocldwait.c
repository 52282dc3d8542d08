// SPDX-License-Identifier: Apache-2.0
// With SIGCHLD ignored there are no zombies: wait blocks until the last child is gone, then ECHILD.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < 3; ++i) {
    if (fork() == 0) {
      sleep_ms(2 * i);
      _exit(i);
    }
  }
  CHECK_EQUAL(wait(NULL), -1);
  CHECK_EQUAL(errno, ECHILD);
  return succeed();
}
