// SPDX-License-Identifier: Apache-2.0
// A stop signal to a group stops all its processes, and SIGCONT to the group continues all; waitpid
// by group finds them.
#include <sys/wait.h>

#include "../small.h"

enum { kMembers = 3 };

int main(void) {
  int go[2];
  CHECK_EQUAL(pipe(go), 0);
  pid_t leader = 0;
  for (int i = 0; i < kMembers; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      char byte;
      close(go[1]);
      while (read(go[0], &byte, 1) < 0 && errno == EINTR) {
      }
      _exit(i);
    }
    if (i == 0) leader = child;
    CHECK_EQUAL(setpgid(child, leader), 0);
  }
  int status, sum = 0;
  CHECK_EQUAL(kill(-leader, SIGSTOP), 0);
  for (int i = 0; i < kMembers; ++i) {
    CHECK(waitpid(-leader, &status, WUNTRACED) > 0);
    CHECK_EQUAL(WIFSTOPPED(status), 1);
  }
  close(go[1]);
  CHECK_EQUAL(waitpid(-leader, &status, WNOHANG), 0);
  CHECK_EQUAL(killpg(leader, SIGCONT), 0);
  for (int i = 0; i < kMembers; ++i) {
    CHECK(waitpid(-leader, &status, 0) > 0);
    CHECK_EQUAL(WIFEXITED(status), 1);
    sum += WEXITSTATUS(status);
  }
  CHECK_EQUAL(sum, 0 + 1 + 2);
  CHECK_EQUAL(waitpid(-leader, &status, 0), -1);
  CHECK_EQUAL(errno, ECHILD);
  return succeed();
}
