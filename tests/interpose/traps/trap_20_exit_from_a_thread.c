// SPDX-License-Identifier: Apache-2.0
// exit() from a thread ends the process with its status while main waits in a join and another
// thread in a lock; handlers of atexit run and may synchronise.
// exit: 9
#include "../small.h"

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, free_one = PTHREAD_MUTEX_INITIALIZER;

static void at_exit(void) {
  pthread_mutex_lock(&free_one);
  printf("handler\n");
  pthread_mutex_unlock(&free_one);
}
static void* block(void* x) {
  pthread_mutex_lock(&held);
  return x;
}
static void* end(void* x) {
  sleep_ms(5);
  exit((int)(long)x);
}

int main(void) {
  atexit(at_exit);
  pthread_mutex_lock(&held);
  start(block, NULL);
  join(start(end, (void*)9));
  return 1;
}
