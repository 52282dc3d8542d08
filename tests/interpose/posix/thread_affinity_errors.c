// SPDX-License-Identifier: Apache-2.0
// An affinity without any processor of the machine is refused, for threads, for processes and for
// new threads; a set that is too small for the result is refused, too.
#define _GNU_SOURCE
#include "../small.h"

static void* nothing(void* unused) { return unused; }

int main(void) {
  cpu_set_t set, empty, last;
  CPU_ZERO(&empty);
  CPU_ZERO(&last);
  CPU_SET(CPU_SETSIZE - 1, &last);
  CHECK_EQUAL(sched_getaffinity(0, sizeof set, &set), 0);
  CHECK(CPU_COUNT(&set) >= 1);
  CHECK_EQUAL(sched_setaffinity(0, sizeof set, &set), 0);
  CHECK_EQUAL(pthread_setaffinity_np(pthread_self(), sizeof set, &set), 0);
  CHECK_EQUAL(sched_setaffinity(0, sizeof empty, &empty), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(pthread_setaffinity_np(pthread_self(), sizeof empty, &empty), EINVAL);
  CHECK_EQUAL(pthread_setaffinity_np(pthread_self(), sizeof last, &last), EINVAL);
  CHECK_EQUAL(sched_getaffinity(0, 1, &set), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sched_getaffinity(0x3ffffffe, sizeof set, &set), -1);
  CHECK_EQUAL(errno, ESRCH);
  pthread_attr_t attributes;
  pthread_t t;
  CHECK_EQUAL(pthread_attr_init(&attributes), 0);
  CHECK_EQUAL(pthread_attr_setaffinity_np(&attributes, sizeof last, &last), 0);
  CHECK_EQUAL(pthread_create(&t, &attributes, nothing, NULL), EINVAL);
  CHECK_EQUAL(pthread_attr_setaffinity_np(&attributes, sizeof set, &set), 0);
  CHECK_EQUAL(pthread_create(&t, &attributes, nothing, NULL), 0);
  join(t);
  return succeed();
}
