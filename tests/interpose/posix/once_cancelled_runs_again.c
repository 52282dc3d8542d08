// SPDX-License-Identifier: Apache-2.0
// A thread cancelled in the routine leaves the variable as if it had never been called.
#include "../small.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t inside;
static int block = 1, runs;
static void make(void) {
  ++runs;
  sem_post(&inside);
  while (block) pause();
}
static void* enter(void* x) {
  pthread_once(&once, make);
  return x;
}

int main(void) {
  sem_init(&inside, 0, 0);
  const pthread_t first = start(enter, NULL);
  sem_wait(&inside);
  const pthread_t second = start(enter, NULL);
  sleep_ms(3);
  block = 0;
  CHECK_EQUAL(pthread_cancel(first), 0);
  CHECK(join(first) == PTHREAD_CANCELED);
  join(second);
  CHECK_EQUAL(runs, 2);
  return succeed();
}
