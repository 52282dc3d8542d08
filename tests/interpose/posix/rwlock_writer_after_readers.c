// SPDX-License-Identifier: Apache-2.0
// A writer that waits gets the lock when the last reader unlocks.
#include "../small.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int written;
static void* write_it(void* x) {
  CHECK_EQUAL(pthread_rwlock_wrlock(&lock), 0);
  written = 1;
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  return x;
}

int main(void) {
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  CHECK_EQUAL(pthread_rwlock_rdlock(&lock), 0);
  const pthread_t t = start(write_it, NULL);
  sleep_ms(3);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  sleep_ms(3);
  CHECK_EQUAL(written, 0);
  CHECK_EQUAL(pthread_rwlock_unlock(&lock), 0);
  join(t);
  CHECK_EQUAL(written, 1);
  return succeed();
}
