// SPDX-License-Identifier: Apache-2.0
// The routine of a pthread_once locks, sleeps and signals; three threads arrive at once. It runs
// once, and no thread continues before it is done.
#include "../small.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int runs, done;

static void make(void) {
  pthread_mutex_lock(&mutex);
  ++runs;
  pthread_mutex_unlock(&mutex);
  sleep_ms(5);
  pthread_mutex_lock(&mutex);
  done = 1;
  pthread_mutex_unlock(&mutex);
}

static void* enter(void* x) {
  CHECK_EQUAL(pthread_once(&once, make), 0);
  CHECK_EQUAL(done, 1);
  return x;
}

int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; ++i) t[i] = start(enter, NULL);
  for (int i = 0; i < 3; ++i) join(t[i]);
  CHECK_EQUAL(runs, 1);
  return succeed();
}
