// SPDX-License-Identifier: Apache-2.0
// pthread_kill delivers to the given thread; each thread has its own mask.
#include "../small.h"

static __thread int rung;
static int in_thread;
static sem_t ready;
static void ring(int signo) { rung += signo == SIGUSR1; }
static void* wait_for_it(void* x) {
  sem_post(&ready);
  while (rung == 0) usleep(500);
  in_thread = rung;
  return x;
}

int main(void) {
  sem_init(&ready, 0, 0);
  handle(SIGUSR1, ring, 0);
  const pthread_t t = start(wait_for_it, NULL);
  sem_wait(&ready);
  CHECK_EQUAL(pthread_kill(t, SIGUSR1), 0);
  join(t);
  CHECK_EQUAL(in_thread, 1);
  CHECK_EQUAL(rung, 0);
  CHECK_EQUAL(pthread_kill(pthread_self(), 0), 0);
  CHECK_EQUAL(pthread_kill(pthread_self(), 1000), EINVAL);
  return succeed();
}
