// SPDX-License-Identifier: Apache-2.0
// SIGEV_THREAD: a function runs in a new thread, with the value.
#include "../small.h"

static sem_t notices;
static pthread_t main_thread;
static void on_notice(union sigval v) {
  CHECK_EQUAL(v.sival_int, 7);
  CHECK(!pthread_equal(pthread_self(), main_thread));
  sem_post(&notices);
}

int main(void) {
  struct sigevent e;
  timer_t t;
  sem_init(&notices, 0, 0);
  main_thread = pthread_self();
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_THREAD;
  e.sigev_notify_function = on_notice;
  e.sigev_value.sival_int = 7;
  CHECK_EQUAL(timer_create(CLOCK_MONOTONIC, &e, &t), 0);
  const struct itimerspec v = {{0, 4 * MS}, {0, 4 * MS}};
  CHECK_EQUAL(timer_settime(t, 0, &v, NULL), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(sem_wait(&notices), 0);
  CHECK_EQUAL(timer_delete(t), 0);
  return succeed();
}
