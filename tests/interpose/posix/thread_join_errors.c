// SPDX-License-Identifier: Apache-2.0
// Joining oneself is a deadlock; a detached thread cannot be joined.
#include "../small.h"

static sem_t go;
static void* wait_for_it(void* x) {
  sem_wait(&go);
  return x;
}

int main(void) {
  sem_init(&go, 0, 0);
  CHECK_EQUAL(pthread_join(pthread_self(), NULL), EDEADLK);
  const pthread_t t = start(wait_for_it, NULL);
  CHECK_EQUAL(pthread_detach(t), 0);
  CHECK_EQUAL(pthread_join(t, NULL), EINVAL);
  CHECK_EQUAL(pthread_detach(t), EINVAL);
  sem_post(&go);
  return succeed();
}
