// SPDX-License-Identifier: Apache-2.0
// A thread created detached ends without a join.
#include "../small.h"

static sem_t ended;
static void* end(void* x) {
  int state;
  pthread_attr_t a;
  CHECK_EQUAL(pthread_getattr_np(pthread_self(), &a), 0);
  pthread_attr_getdetachstate(&a, &state);
  CHECK_EQUAL(state, PTHREAD_CREATE_DETACHED);
  pthread_attr_destroy(&a);
  sem_post(&ended);
  return x;
}

int main(void) {
  pthread_attr_t a;
  pthread_t t;
  sem_init(&ended, 0, 0);
  pthread_attr_init(&a);
  CHECK_EQUAL(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED), 0);
  CHECK_EQUAL(pthread_create(&t, &a, end, NULL), 0);
  sem_wait(&ended);
  return succeed();
}
