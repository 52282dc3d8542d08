// SPDX-License-Identifier: Apache-2.0
// mq_notify by signal: once, for a message that arrives at the empty queue, with the registered
// value; one process at a time is registered.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>

#include "../child.h"

static mqd_t q;

static int busy(int unused) {
  struct sigevent e = {.sigev_notify = SIGEV_NONE};
  CHECK_EQUAL(mq_notify(q, &e), -1);
  CHECK_EQUAL(errno, EBUSY);
  return unused;
}

int main(void) {
  char name[80], b[8];
  siginfo_t info;
  struct mq_attr a = {.mq_maxmsg = 4, .mq_msgsize = 8};
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a);
  CHECK(q >= 0);
  CHECK_EQUAL(mq_unlink(name), 0);
  block_signal(SIGRTMIN);
  const sigset_t set = set_of_signal(SIGRTMIN);
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = SIGRTMIN;
  e.sigev_value.sival_int = 55;
  CHECK_EQUAL(mq_notify(q, &e), 0);
  CHECK_EQUAL(mq_notify(q, &e), -1);
  CHECK_EQUAL(errno, EBUSY);
  CHECK_EQUAL(status_of(start_process(busy, 0)), 0);
  CHECK_EQUAL(mq_send(q, "x", 1, 0), 0);
  CHECK_EQUAL(sigwaitinfo(&set, &info), SIGRTMIN);
  CHECK_EQUAL(info.si_code, SI_MESGQ);
  CHECK_EQUAL(info.si_pid, getpid());
  CHECK_EQUAL(info.si_value.sival_int, 55);
  CHECK_EQUAL(mq_send(q, "y", 1, 0), 0);
  const struct timespec now = {0, 0};
  CHECK_EQUAL(sigtimedwait(&set, NULL, &now), -1);
  CHECK_EQUAL(mq_notify(q, &e), 0);
  CHECK_EQUAL(mq_send(q, "z", 1, 0), 0);
  CHECK_EQUAL(sigtimedwait(&set, NULL, &now), -1);  // it was not empty
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(mq_receive(q, b, sizeof b, NULL), 1);
  CHECK_EQUAL(mq_notify(q, NULL), 0);
  CHECK_EQUAL(mq_send(q, "x", 1, 0), 0);
  CHECK_EQUAL(sigtimedwait(&set, NULL, &now), -1);
  return succeed();
}
