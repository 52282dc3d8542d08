// SPDX-License-Identifier: Apache-2.0
// Thread attributes return the values that were set, and refuse invalid ones.
#define _GNU_SOURCE
#include <limits.h>

#include "../small.h"

int main(void) {
  pthread_attr_t a;
  size_t size = 0;
  int value = -1;
  CHECK_EQUAL(pthread_attr_init(&a), 0);
  CHECK_EQUAL(pthread_attr_getdetachstate(&a, &value), 0);
  CHECK_EQUAL(value, PTHREAD_CREATE_JOINABLE);
  CHECK_EQUAL(pthread_attr_setdetachstate(&a, 99), EINVAL);
  CHECK_EQUAL(pthread_attr_setstacksize(&a, 256 * 1024), 0);
  CHECK_EQUAL(pthread_attr_getstacksize(&a, &size), 0);
  CHECK_EQUAL(size, 256 * 1024);
  CHECK_EQUAL(pthread_attr_setstacksize(&a, 1), EINVAL);
  CHECK_EQUAL(pthread_attr_setguardsize(&a, 8192), 0);
  CHECK_EQUAL(pthread_attr_getguardsize(&a, &size), 0);
  CHECK_EQUAL(size, 8192);
  CHECK_EQUAL(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM), 0);
  CHECK_EQUAL(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED), 0);
  CHECK_EQUAL(pthread_attr_getinheritsched(&a, &value), 0);
  CHECK_EQUAL(value, PTHREAD_EXPLICIT_SCHED);
  CHECK_EQUAL(pthread_attr_destroy(&a), 0);
  return succeed();
}
