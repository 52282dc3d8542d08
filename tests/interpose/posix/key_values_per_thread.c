// SPDX-License-Identifier: Apache-2.0
// Each thread has its own value of a key, NULL at first; a deleted key calls no destructor.
#include "../small.h"

static pthread_key_t key, deleted;
static int destroyed;
static void destroy(void* x) {
  (void)x;
  ++destroyed;
}
static void* use(void* x) {
  CHECK(pthread_getspecific(key) == NULL);
  CHECK_EQUAL(pthread_setspecific(key, x), 0);
  CHECK_EQUAL(pthread_setspecific(deleted, x), 0);
  sched_yield();
  CHECK(pthread_getspecific(key) == x);
  CHECK_EQUAL(pthread_key_delete(deleted), 0);
  return x;
}

int main(void) {
  CHECK_EQUAL(pthread_key_create(&key, destroy), 0);
  CHECK_EQUAL(pthread_key_create(&deleted, destroy), 0);
  join(start(use, &key));
  CHECK_EQUAL(destroyed, 1);
  CHECK(pthread_getspecific(key) == NULL);
  CHECK_EQUAL(pthread_key_delete(key), 0);
  CHECK_EQUAL(pthread_setspecific(key, &key), EINVAL);
  return succeed();
}
