// SPDX-License-Identifier: Apache-2.0
// SIGEV_THREAD_ID signals only that thread, with code and value, whatever the other threads' masks
// are.
#include "../small.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static int wanted;
static sem_t came, ready;

static void on_notice(int signo, siginfo_t* info, void* context) {
  (void)context;
  CHECK_EQUAL(signo, SIGUSR1);
  CHECK_EQUAL(info->si_code, SI_TIMER);
  CHECK_EQUAL(info->si_value.sival_int, 31);
  CHECK_EQUAL(gettid(), wanted);
  CHECK_EQUAL(sem_post(&came), 0);
}

static void* stand(void* done) {
  wanted = gettid();
  CHECK_EQUAL(sem_post(&ready), 0);
  while (sem_wait(done) != 0) CHECK_EQUAL(errno, EINTR);
  return NULL;
}

int main(void) {
  sem_t done;
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_sigaction = on_notice;
  a.sa_flags = SA_SIGINFO;
  CHECK_EQUAL(sigaction(SIGUSR1, &a, NULL), 0);
  CHECK_EQUAL(sem_init(&done, 0, 0), 0);
  CHECK_EQUAL(sem_init(&came, 0, 0), 0);
  CHECK_EQUAL(sem_init(&ready, 0, 0), 0);
  const pthread_t t = start(stand, &done);
  CHECK_EQUAL(sem_wait(&ready), 0);
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_THREAD_ID;
  e.sigev_signo = SIGUSR1;
  e.sigev_value.sival_int = 31;
  e.sigev_notify_thread_id = wanted;
  timer_t timer;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &timer), 0);
  const struct itimerspec v = {{0, 0}, {0, MS}};
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(timer_settime(timer, 0, &v, NULL), 0);
    CHECK_EQUAL(sem_wait(&came), 0);
  }
  CHECK_EQUAL(sem_post(&done), 0);
  join(t);
  return succeed();
}
