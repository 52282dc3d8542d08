// SPDX-License-Identifier: Apache-2.0
// C11 threads, their mutexes, conditions and once flags.
#define _GNU_SOURCE
#include <threads.h>

#include "../small.h"

static mtx_t mutex;
static cnd_t condition;
static once_flag flag = ONCE_FLAG_INIT;
static int made, ready;

static void make(void) { ++made; }
static int take(void* x) {
  call_once(&flag, make);
  mtx_lock(&mutex);
  while (ready == 0) cnd_wait(&condition, &mutex);
  --ready;
  mtx_unlock(&mutex);
  return (int)(long)x;
}

int main(void) {
  thrd_t t[2];
  CHECK_EQUAL(mtx_init(&mutex, mtx_plain), thrd_success);
  CHECK_EQUAL(cnd_init(&condition), thrd_success);
  for (long i = 0; i < 2; ++i) {
    CHECK_EQUAL(thrd_create(&t[i], take, (void*)(i + 10)), thrd_success);
  }
  const struct timespec nap = timespec_of(5 * MS);
  CHECK_EQUAL(thrd_sleep(&nap, NULL), 0);
  mtx_lock(&mutex);
  ready = 2;
  cnd_broadcast(&condition);
  mtx_unlock(&mutex);
  for (int i = 0; i < 2; ++i) {
    int result = 0;
    CHECK_EQUAL(thrd_join(t[i], &result), thrd_success);
    CHECK_EQUAL(result, i + 10);
  }
  CHECK_EQUAL(made, 1);
  return succeed();
}
