// SPDX-License-Identifier: Apache-2.0
// sem_init refuses a value beyond SEM_VALUE_MAX; sem_destroy of a new semaphore succeeds.
#define _GNU_SOURCE
#include <limits.h>

#include "../small.h"

int main(void) {
  sem_t s;
  CHECK_EQUAL(sem_init(&s, 0, (unsigned)SEM_VALUE_MAX + 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sem_init(&s, 0, 3), 0);
  CHECK_EQUAL(sem_destroy(&s), 0);
  return succeed();
}
