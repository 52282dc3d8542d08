// SPDX-License-Identifier: Apache-2.0
// pthread_tryjoin_np of a running thread fails with EBUSY, also when it is detached,
// and of the caller itself; pthread_join then fails with EINVAL, or EDEADLK.
#include "../small.h"

static sem_t done;

static void* stand(void* unused) {
  while (sem_wait(&done) != 0) {
  }
  return unused;
}

static void* wait_and_report(void* gone) {
  stand(NULL);
  CHECK_EQUAL(sem_post(gone), 0);
  return NULL;
}

int main(void) {
  sem_t gone;
  void* result;
  CHECK_EQUAL(sem_init(&done, 0, 0), 0);
  CHECK_EQUAL(sem_init(&gone, 0, 0), 0);
  CHECK_EQUAL(pthread_join(pthread_self(), NULL), EDEADLK);
  pthread_t t = start(stand, NULL);
  CHECK_EQUAL(pthread_tryjoin_np(t, &result), EBUSY);
  CHECK_EQUAL(sem_post(&done), 0);
  join(t);
  t = start(wait_and_report, &gone);
  CHECK_EQUAL(pthread_detach(t), 0);
  CHECK_EQUAL(pthread_join(t, NULL), EINVAL);
  CHECK_EQUAL(pthread_detach(t), EINVAL);
  CHECK_EQUAL(pthread_tryjoin_np(t, &result), EBUSY);
  CHECK_EQUAL(sem_post(&done), 0);
  CHECK_EQUAL(sem_wait(&gone), 0);
  CHECK_EQUAL(pthread_tryjoin_np(pthread_self(), &result), EBUSY);
  return succeed();
}
