// SPDX-License-Identifier: Apache-2.0
// Destroying a held mutex returns EBUSY.
#include "../small.h"

int main(void) {
  pthread_mutex_t m;
  pthread_mutex_init(&m, NULL);
  pthread_mutex_lock(&m);
  CHECK_EQUAL(pthread_mutex_destroy(&m), EBUSY);
  pthread_mutex_unlock(&m);
  CHECK_EQUAL(pthread_mutex_destroy(&m), 0);
  CHECK_EQUAL(pthread_mutex_init(&m, NULL), 0);
  CHECK_EQUAL(pthread_mutex_lock(&m), 0);
  return succeed();
}
