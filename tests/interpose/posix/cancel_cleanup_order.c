// SPDX-License-Identifier: Apache-2.0
// Clean-up handlers run last first, then the destructors of keys; pthread_exit runs them too.
#include "../small.h"

static char order[16];
static pthread_key_t key;
static void add(void* x) { strncat(order, x, 1); }
static void* work(void* x) {
  pthread_setspecific(key, "k");
  pthread_cleanup_push(add, "a");
  pthread_cleanup_push(add, "b");
  pthread_cleanup_push(add, "c");
  pthread_cleanup_pop(1);
  if (x == NULL) pthread_exit(NULL);
  for (;;) pause();
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return x;
}

int main(void) {
  CHECK_EQUAL(pthread_key_create(&key, add), 0);
  join(start(work, NULL));
  CHECK_EQUAL(strcmp(order, "cbak"), 0);
  order[0] = '\0';
  const pthread_t t = start(work, order);
  sleep_ms(3);
  CHECK_EQUAL(pthread_cancel(t), 0);
  CHECK(join(t) == PTHREAD_CANCELED);
  CHECK_EQUAL(strcmp(order, "cbak"), 0);
  return succeed();
}
