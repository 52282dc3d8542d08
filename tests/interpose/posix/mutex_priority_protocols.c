// SPDX-License-Identifier: Apache-2.0
// Mutexes with priority inheritance exclude like the others.
#include "../small.h"

static pthread_mutex_t mutex;
static int total;
static void* enter(void* x) {
  for (int i = 0; i < 20; ++i) {
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    const int seen = total;
    sched_yield();
    total = seen + 1;
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  }
  return x;
}

int main(void) {
  pthread_mutexattr_t a;
  pthread_t t[3];
  int protocol = -1;
  pthread_mutexattr_init(&a);
  CHECK_EQUAL(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT), 0);
  CHECK_EQUAL(pthread_mutexattr_getprotocol(&a, &protocol), 0);
  CHECK_EQUAL(protocol, PTHREAD_PRIO_INHERIT);
  CHECK_EQUAL(pthread_mutex_init(&mutex, &a), 0);
  for (int i = 0; i < 3; ++i) t[i] = start(enter, NULL);
  for (int i = 0; i < 3; ++i) join(t[i]);
  CHECK_EQUAL(total, 60);
  return succeed();
}
