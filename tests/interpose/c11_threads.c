// SPDX-License-Identifier: Apache-2.0
// C11 threads, which do not call the pthread functions by their names (trap 42).
#include <threads.h>
#include <time.h>

#include "check.h"

static mtx_t mutex;
static cnd_t changed;
static once_flag once = ONCE_FLAG_INIT;
static int turn, runs;

static void run(void) { ++runs; }

static int alternate(void* x) {
  const int me = (int)(long)x;
  call_once(&once, run);
  for (int i = 0; i < 100; ++i) {
    mtx_lock(&mutex);
    while (turn != me) cnd_wait(&changed, &mutex);
    turn = 1 - me;
    cnd_broadcast(&changed);
    mtx_unlock(&mutex);
    thrd_yield();
  }
  if (me == 1) thrd_exit(42);
  return 41;
}

int main(void) {
  CHECK_EQUAL(mtx_init(&mutex, mtx_timed), thrd_success);
  CHECK_EQUAL(cnd_init(&changed), thrd_success);
  thrd_t a, b;
  int first, second;
  CHECK_EQUAL(thrd_create(&a, alternate, (void*)0), thrd_success);
  CHECK_EQUAL(thrd_create(&b, alternate, (void*)1), thrd_success);
  CHECK_EQUAL(thrd_join(a, &first), thrd_success);
  CHECK_EQUAL(thrd_join(b, &second), thrd_success);
  CHECK_EQUAL(first, 41);
  CHECK_EQUAL(second, 42);
  CHECK_EQUAL(runs, 1);
  struct timespec at;
  timespec_get(&at, TIME_UTC);
  CHECK_EQUAL(mtx_lock(&mutex), thrd_success);
  CHECK_EQUAL(mtx_trylock(&mutex), thrd_busy);
  CHECK_EQUAL(cnd_timedwait(&changed, &mutex, &at), thrd_timedout);
  CHECK_EQUAL(mtx_timedlock(&mutex, &at), thrd_timedout);
  mtx_unlock(&mutex);
  const struct timespec nap = {0, 1000000};
  CHECK_EQUAL(thrd_sleep(&nap, NULL), 0);
  cnd_destroy(&changed);
  return succeed();
}
