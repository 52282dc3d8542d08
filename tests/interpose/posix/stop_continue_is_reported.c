// SPDX-License-Identifier: Apache-2.0
// WCONTINUED reports once that a stopped child continues; SIGCONT to a child that was not stopped
// reports nothing; a stop that was not waited for is no longer reported after the child continues.
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  int block[2];
  CHECK_EQUAL(pipe(block), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(block[1]);
    while (read(block[0], &byte, 1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }
  int status = 0;
  CHECK_EQUAL(kill(child, SIGCONT), 0);
  CHECK_EQUAL(waitpid(child, &status, WCONTINUED | WUNTRACED | WNOHANG), 0);
  CHECK_EQUAL(kill(child, SIGSTOP), 0);
  CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
  CHECK_EQUAL(WIFSTOPPED(status), 1);
  CHECK_EQUAL(kill(child, SIGCONT), 0);
  CHECK_EQUAL(waitpid(child, &status, WCONTINUED), child);
  CHECK_EQUAL(WIFCONTINUED(status), 1);
  CHECK_EQUAL(WIFSTOPPED(status), 0);
  CHECK_EQUAL(waitpid(child, &status, WCONTINUED | WNOHANG), 0);
  CHECK_EQUAL(kill(child, SIGSTOP), 0);
  siginfo_t info;
  CHECK_EQUAL(waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT), 0);
  CHECK_EQUAL(kill(child, SIGCONT), 0);
  CHECK_EQUAL(waitpid(child, &status, WUNTRACED | WCONTINUED), child);
  CHECK_EQUAL(WIFCONTINUED(status), 1);
  close(block[1]);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  return succeed();
}
