// SPDX-License-Identifier: Apache-2.0
// A timer's number is unique while it exists; deleting timers does not affect the others, also
// within their own handler.
#include "../small.h"

static timer_t timers[8];
static volatile sig_atomic_t calls;

static void on_notice(int signo, siginfo_t* info, void* context) {
  (void)context;
  CHECK_EQUAL(signo, SIGUSR1);
  CHECK_EQUAL(info->si_code, SI_TIMER);
  CHECK_EQUAL(timer_delete(timers[info->si_value.sival_int]), 0);
  ++calls;
}

int main(void) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_sigaction = on_notice;
  a.sa_flags = SA_SIGINFO;
  CHECK_EQUAL(sigaction(SIGUSR1, &a, NULL), 0);
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_SIGNAL;
  e.sigev_signo = SIGUSR1;
  for (int i = 0; i < 8; ++i) {
    e.sigev_value.sival_int = i;
    CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &timers[i]), 0);
    for (int j = 0; j < i; ++j) CHECK(timers[i] != timers[j]);
  }
  const struct itimerspec v = {{50, 0}, {0, MS}}, far = {{0, 0}, {100, 0}};
  for (int i = 0; i < 8; ++i) {
    CHECK_EQUAL(timer_settime(timers[i], 0, i % 2 == 0 ? &v : &far, NULL), 0);
    const int wanted = i / 2 + 1;
    const struct timespec moment = {0, MS};
    while (calls < wanted) nanosleep(&moment, NULL);
  }
  CHECK_EQUAL(calls, 4);
  struct itimerspec left;
  for (int i = 0; i < 8; ++i) CHECK_EQUAL(timer_gettime(timers[i], &left), i % 2 == 0 ? -1 : 0);
  return succeed();
}
