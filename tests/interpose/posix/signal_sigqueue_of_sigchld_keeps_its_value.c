// SPDX-License-Identifier: Apache-2.0
// A SIGCHLD that a process queues carries its value, separately from those about children.
#include "../child.h"

static int sends(int parent) {
  const union sigval v = {.sival_int = 0x1234567};
  return sigqueue(parent, SIGCHLD, v);
}

int main(void) {
  block_signal(SIGCHLD);
  const sigset_t set = set_of_signal(SIGCHLD);
  const pid_t child = start_process(sends, getpid());
  CHECK_EQUAL(status_of(child), 0);
  // The signal about the child's end merges with the one that it queued before.
  siginfo_t info;
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGCHLD);
  CHECK_EQUAL(info.si_code, SI_QUEUE);
  CHECK_EQUAL(info.si_pid, child);
  CHECK_EQUAL(info.si_value.sival_int, 0x1234567);
  const struct timespec now = {0, 0};
  CHECK_EQUAL(sigtimedwait(&set, &info, &now), -1);
  CHECK_EQUAL(errno, EAGAIN);
  const pid_t second = fork();
  if (second == 0) _exit(5);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGCHLD);
  CHECK_EQUAL(info.si_code, CLD_EXITED);
  CHECK_EQUAL(info.si_pid, second);
  CHECK_EQUAL(info.si_status, 5);
  CHECK_EQUAL(WEXITSTATUS(status_of(second)), 5);
  return succeed();
}
