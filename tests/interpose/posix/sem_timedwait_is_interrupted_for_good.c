// SPDX-License-Identifier: Apache-2.0
// A handler ends sem_timedwait with EINTR, with and without SA_RESTART; sem_wait continues after a
// handler with SA_RESTART.
#include "../small.h"

static sem_t never, later;

static void* post_later(void* unused) {
  sleep_ms(60);
  CHECK_EQUAL(sem_post(&later), 0);
  return unused;
}

static void wait_timed(void) {
  const struct timespec t = in_ns(CLOCK_REALTIME, 60000 * MS);
  CHECK_EQUAL(sem_timedwait(&never, &t), -1);
  CHECK_EQUAL(errno, EINTR);
}

int main(void) {
  struct Interruptions rings;
  CHECK_EQUAL(sem_init(&never, 0, 0), 0);
  CHECK_EQUAL(sem_init(&later, 0, 0), 0);
  begin_interruptions(&rings, 0);
  wait_timed();
  CHECK_EQUAL(sem_wait(&never), -1);
  CHECK_EQUAL(errno, EINTR);
  end_interruptions(&rings);
  begin_interruptions(&rings, SA_RESTART);
  wait_timed();
  const pthread_t t = start(post_later, NULL);
  CHECK_EQUAL(sem_wait(&later), 0);
  join(t);
  end_interruptions(&rings);
  return succeed();
}
