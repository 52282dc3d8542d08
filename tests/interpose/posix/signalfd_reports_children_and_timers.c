// SPDX-License-Identifier: Apache-2.0
// A signalfd returns the status of an ended child, and the number and value of a timer.
#include <sys/signalfd.h>

#include "../child.h"

static int leaves(int status) { return status; }

int main(void) {
  struct signalfd_siginfo info;
  sigset_t set = set_of_signal(SIGCHLD);
  sigaddset(&set, SIGRTMIN + 2);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
  const int fd = signalfd(-1, &set, 0);
  const pid_t child = start_process(leaves, 9);
  CHECK_EQUAL(read(fd, &info, sizeof info), sizeof info);
  CHECK_EQUAL(info.ssi_signo, SIGCHLD);
  CHECK_EQUAL(info.ssi_code, CLD_EXITED);
  CHECK_EQUAL(info.ssi_pid, child);
  CHECK_EQUAL(info.ssi_uid, getuid());
  CHECK_EQUAL(info.ssi_status, 9);
  CHECK_EQUAL(WEXITSTATUS(status_of(child)), 9);
  timer_t t;
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = SIGRTMIN + 2;
  e.sigev_value.sival_int = 4711;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &t), 0);
  const struct itimerspec v = {{0, 0}, {0, MS}};
  CHECK_EQUAL(timer_settime(t, 0, &v, NULL), 0);
  CHECK_EQUAL(read(fd, &info, sizeof info), sizeof info);
  CHECK_EQUAL(info.ssi_signo, SIGRTMIN + 2);
  CHECK_EQUAL(info.ssi_code, SI_TIMER);
  CHECK_EQUAL(info.ssi_tid, (long)t);
  CHECK_EQUAL(info.ssi_overrun, 0);
  CHECK_EQUAL(info.ssi_int, 4711);
  CHECK_EQUAL(timer_delete(t), 0);
  return succeed();
}
