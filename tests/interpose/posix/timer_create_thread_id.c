// SPDX-License-Identifier: Apache-2.0
// SIGEV_THREAD_ID: the signal goes to the given thread.
#include "../small.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static sem_t ready;
static pid_t id;
static __thread int rung;
static void ring(int signo) { rung = signo; }
static void* wait_for_it(void* x) {
  id = gettid();
  sem_post(&ready);
  while (rung == 0) usleep(1000);
  return x;
}

int main(void) {
  struct sigevent e;
  timer_t t;
  handle(SIGUSR2, ring, 0);
  sem_init(&ready, 0, 0);
  const pthread_t thread = start(wait_for_it, NULL);
  sem_wait(&ready);
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_THREAD_ID;
  e.sigev_signo = SIGUSR2;
  e.sigev_notify_thread_id = id;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &t), 0);
  const struct itimerspec in5 = {{0, 0}, {0, 5 * MS}};
  CHECK_EQUAL(timer_settime(t, 0, &in5, NULL), 0);
  join(thread);
  CHECK_EQUAL(rung, 0);
  e.sigev_notify_thread_id = 0x3fffffff;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
