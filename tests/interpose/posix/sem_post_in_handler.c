// SPDX-License-Identifier: Apache-2.0
// sem_post in a signal handler wakes a thread.
#include "../small.h"

static sem_t semaphore;
static void post(int signo) {
  (void)signo;
  sem_post(&semaphore);
}
static void* wait_for_it(void* x) {
  CHECK_EQUAL(sem_wait(&semaphore), 0);
  return x;
}

int main(void) {
  sem_init(&semaphore, 0, 0);
  handle(SIGUSR1, post, 0);
  const pthread_t t = start(wait_for_it, NULL);
  sleep_ms(3);
  pthread_kill(pthread_self(), SIGUSR1);
  join(t);
  return succeed();
}
