// SPDX-License-Identifier: Apache-2.0
// A lock made of a flag, a mutex and a condition, as interpreters have: a thread that releases and
// retakes it in a loop of few calls does not starve another thread that waits for it. The loop
// begins at several distances from the previous calls, and has several numbers of calls.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given_up = PTHREAD_COND_INITIALIZER;
static int locked, waits, finished;

static void take(void) {
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  while (locked) CHECK_EQUAL(pthread_cond_wait(&given_up, &mutex), 0);
  locked = 1;
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
}

static void give_up(void) {
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  locked = 0;
  CHECK_EQUAL(pthread_cond_signal(&given_up), 0);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
}

static void some_calls(int count) {
  for (int i = 0; i < count; ++i) CHECK_EQUAL(sched_getscheduler(0), SCHED_OTHER);
}

// Long enough for a woken thread to arrive.
static void compute(void) {
  for (volatile int i = 0; i < 100000; ++i) {
  }
}

static void* finish(void* unused) {
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  waits = 1;
  while (locked) CHECK_EQUAL(pthread_cond_wait(&given_up, &mutex), 0);
  locked = 1;
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  finished = 1;
  give_up();
  return unused;
}

// The other thread waits before the loop begins.
static pthread_t start_waiting(void) {
  const pthread_t t = start(finish, NULL);
  for (int seen = 0; !seen; sched_yield()) {
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    seen = waits;
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  }
  return t;
}

static void one(int distance, int calls) {
  finished = waits = 0;
  take();
  const pthread_t other = start_waiting();
  some_calls(distance);
  while (!finished) {
    give_up();
    compute();
    take();
    some_calls(calls);
  }
  give_up();
  join(other);
}

int main(void) {
  for (int distance = 0; distance < 10; distance += 2) {
    one(distance, 0);
    one(distance, 5);
    one(distance + 1, 15);
  }
  return succeed();
}
