// SPDX-License-Identifier: Apache-2.0
// SA_NOCLDWAIT: children leave no status; wait returns ECHILD when the last has ended; SIGCHLD
// still comes.
#include <sys/wait.h>

#include "../small.h"

static volatile sig_atomic_t calls;
static void on_child(int signo) {
  (void)signo;
  ++calls;
}

int main(void) {
  handle(SIGCHLD, on_child, SA_NOCLDWAIT | SA_RESTART);
  int go[2];
  CHECK_EQUAL(pipe(go), 0);
  for (int i = 0; i < 3; ++i) {
    if (fork() == 0) {
      char byte;
      close(go[1]);
      (void)!read(go[0], &byte, 1);
      _exit(i);
    }
  }
  close(go[1]);
  int status = 77;
  CHECK_EQUAL(wait(&status), -1);
  CHECK_EQUAL(errno, ECHILD);
  CHECK_EQUAL(status, 77);
  CHECK(calls >= 1);
  handle(SIGCHLD, SIG_DFL, 0);
  const pid_t child = fork();
  if (child == 0) _exit(3);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WEXITSTATUS(status), 3);
  return succeed();
}
