// SPDX-License-Identifier: Apache-2.0
// A signal wakes one waiter, which must lock the mutex again: the signaller keeps it until its
// unlock, and a wake-up does not mean that the condition still holds.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int waiting, items, taken;

static void* take(void* x) {
  pthread_mutex_lock(&mutex);
  ++waiting;
  while (items == 0) pthread_cond_wait(&condition, &mutex);
  --items;
  ++taken;
  pthread_mutex_unlock(&mutex);
  return x;
}

static void wait_for(int* what, int value) {
  for (;;) {
    pthread_mutex_lock(&mutex);
    const int seen = *what;
    pthread_mutex_unlock(&mutex);
    if (seen == value) return;
    usleep(100);
  }
}

int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; ++i) t[i] = start(take, NULL);
  wait_for(&waiting, 3);
  for (int i = 1; i <= 3; ++i) {
    pthread_mutex_lock(&mutex);
    items = 1;
    pthread_cond_signal(&condition);
    sleep_ms(2);
    CHECK_EQUAL(taken, i - 1);  // no thread gets the mutex before the unlock
    pthread_mutex_unlock(&mutex);
    wait_for(&taken, i);
  }
  for (int i = 0; i < 3; ++i) join(t[i]);
  return succeed();
}
