// SPDX-License-Identifier: Apache-2.0
// While cancellation is disabled a request is pending; when enabled it acts at the next point.
#include "../small.h"

static sem_t begun, cancelled;
static int stage;
static void* work(void* x) {
  int old = -1;
  CHECK_EQUAL(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
  CHECK_EQUAL(old, PTHREAD_CANCEL_ENABLE);
  sem_post(&begun);
  sem_wait(&cancelled);
  pthread_testcancel();
  usleep(100);
  stage = 1;
  CHECK_EQUAL(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
  stage = 2;
  pthread_testcancel();
  stage = 3;
  return x;
}

int main(void) {
  sem_init(&begun, 0, 0);
  sem_init(&cancelled, 0, 0);
  const pthread_t t = start(work, NULL);
  sem_wait(&begun);
  CHECK_EQUAL(pthread_cancel(t), 0);
  sem_post(&cancelled);
  CHECK(join(t) == PTHREAD_CANCELED);
  CHECK_EQUAL(stage, 2);
  CHECK_EQUAL(pthread_setcancelstate(77, NULL), EINVAL);
  CHECK_EQUAL(pthread_setcanceltype(77, NULL), EINVAL);
  return succeed();
}
