// SPDX-License-Identifier: Apache-2.0
// sem_post beyond SEM_VALUE_MAX returns an error, and no post is lost.
#include <limits.h>

#include "../small.h"

int main(void) {
  sem_t s;
  int value = 0;
  CHECK_EQUAL(sem_init(&s, 0, SEM_VALUE_MAX), 0);
  CHECK_EQUAL(sem_post(&s), -1);
  CHECK_EQUAL(errno, EOVERFLOW);
  CHECK_EQUAL(sem_wait(&s), 0);
  CHECK_EQUAL(sem_getvalue(&s, &value), 0);
  CHECK_EQUAL(value, SEM_VALUE_MAX - 1);
  CHECK_EQUAL(sem_post(&s), 0);
  CHECK_EQUAL(sem_post(&s), -1);
  CHECK_EQUAL(errno, EOVERFLOW);
  CHECK_EQUAL(sem_getvalue(&s, &value), 0);
  CHECK_EQUAL(value, SEM_VALUE_MAX);
  CHECK_EQUAL(sem_init(&s, 0, (unsigned)SEM_VALUE_MAX + 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
