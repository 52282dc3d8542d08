// SPDX-License-Identifier: Apache-2.0
// sem_timedwait: ETIMEDOUT at its time, 0 when posted; a bad time is always refused.
#include "../small.h"

int main(void) {
  sem_t s;
  const struct timespec bad = {0, -1};
  sem_init(&s, 0, 0);
  const struct timespec until = in_ns(CLOCK_REALTIME, 10 * MS);
  CHECK_EQUAL(sem_timedwait(&s, &until), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  CHECK(now_ns(CLOCK_REALTIME) >= until.tv_sec * 1000000000LL + until.tv_nsec);
  sem_post(&s);
  CHECK_EQUAL(sem_timedwait(&s, &until), 0);
  sem_post(&s);
  CHECK_EQUAL(sem_timedwait(&s, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
