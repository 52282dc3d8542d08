// SPDX-License-Identifier: Apache-2.0
// A semaphore counts: posts before waits are kept, waits beyond block.
#include "../small.h"

static sem_t semaphore;
static int passed;
static void* wait_for_it(void* x) {
  CHECK_EQUAL(sem_wait(&semaphore), 0);
  __atomic_fetch_add(&passed, 1, __ATOMIC_SEQ_CST);
  return x;
}

int main(void) {
  pthread_t t[5];
  int value = -1;
  CHECK_EQUAL(sem_init(&semaphore, 0, 2), 0);
  for (int i = 0; i < 5; ++i) t[i] = start(wait_for_it, NULL);
  sleep_ms(10);
  CHECK_EQUAL(__atomic_load_n(&passed, __ATOMIC_SEQ_CST), 2);
  for (int i = 0; i < 4; ++i) CHECK_EQUAL(sem_post(&semaphore), 0);
  for (int i = 0; i < 5; ++i) join(t[i]);
  CHECK_EQUAL(sem_getvalue(&semaphore, &value), 0);
  CHECK_EQUAL(value, 1);
  CHECK_EQUAL(sem_trywait(&semaphore), 0);
  CHECK_EQUAL(sem_trywait(&semaphore), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return succeed();
}
