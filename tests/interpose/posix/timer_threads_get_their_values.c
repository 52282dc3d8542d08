// SPDX-License-Identifier: Apache-2.0
// SIGEV_THREAD: each expiration starts a detached thread with the given value and the given
// attributes.
#include "../small.h"

static sem_t came;
static pthread_t creator;
static long sum;
static size_t stack_bytes;

static void on_notice(union sigval v) {
  pthread_attr_t own;
  CHECK(!pthread_equal(pthread_self(), creator));
  int state = -1;
  CHECK_EQUAL(pthread_getattr_np(pthread_self(), &own), 0);
  CHECK_EQUAL(pthread_attr_getdetachstate(&own, &state), 0);
  CHECK_EQUAL(state, PTHREAD_CREATE_DETACHED);
  CHECK_EQUAL(pthread_attr_getstacksize(&own, &stack_bytes), 0);
  pthread_attr_destroy(&own);
  __atomic_add_fetch(&sum, *(int*)v.sival_ptr, __ATOMIC_SEQ_CST);
  CHECK_EQUAL(sem_post(&came), 0);
}

int main(void) {
  timer_t first, second;
  int one = 1, hundred = 100;
  pthread_attr_t attributes;
  struct sigevent e;
  creator = pthread_self();
  CHECK_EQUAL(sem_init(&came, 0, 0), 0);
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_THREAD;
  e.sigev_notify_function = on_notice;
  e.sigev_value.sival_ptr = &one;
  CHECK_EQUAL(timer_create(CLOCK_REALTIME, &e, &first), 0);
  CHECK_EQUAL(pthread_attr_init(&attributes), 0);
  CHECK_EQUAL(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
  e.sigev_notify_attributes = &attributes;
  e.sigev_value.sival_ptr = &hundred;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &second), 0);
  const struct itimerspec v = {{0, 0}, {0, MS}};
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(timer_settime(first, 0, &v, NULL), 0);
    CHECK_EQUAL(sem_wait(&came), 0);
    CHECK_EQUAL(timer_settime(second, 0, &v, NULL), 0);
    CHECK_EQUAL(sem_wait(&came), 0);
    CHECK_EQUAL(stack_bytes, 1 << 20);
  }
  CHECK_EQUAL(__atomic_load_n(&sum, __ATOMIC_SEQ_CST), 303);
  CHECK_EQUAL(timer_delete(first), 0);
  CHECK_EQUAL(timer_delete(second), 0);
  return succeed();
}
