// SPDX-License-Identifier: Apache-2.0
// A constructor starts a thread and waits for it; another leaves one running into main.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_t left;
static int first, second;

static void* set_first(void* x) {
  pthread_mutex_lock(&mutex);
  first = 1;
  pthread_mutex_unlock(&mutex);
  return x;
}
static void* set_second(void* x) {
  sleep_ms(5);
  second = 2;
  return x;
}
__attribute__((constructor)) static void before(void) {
  join(start(set_first, NULL));
  left = start(set_second, NULL);
}

int main(void) {
  CHECK_EQUAL(first, 1);
  join(left);
  CHECK_EQUAL(second, 2);
  return succeed();
}
