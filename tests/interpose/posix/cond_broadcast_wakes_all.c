// SPDX-License-Identifier: Apache-2.0
// A broadcast wakes all waiters.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int waiting, go;
static void* wait_for_it(void* x) {
  pthread_mutex_lock(&mutex);
  ++waiting;
  while (!go) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  return x;
}

int main(void) {
  pthread_t t[6];
  for (int i = 0; i < 6; ++i) t[i] = start(wait_for_it, NULL);
  for (int all = 0; !all; usleep(100)) {
    pthread_mutex_lock(&mutex);
    all = waiting == 6;
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_lock(&mutex);
  go = 1;
  CHECK_EQUAL(pthread_cond_broadcast(&condition), 0);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < 6; ++i) join(t[i]);
  return succeed();
}
