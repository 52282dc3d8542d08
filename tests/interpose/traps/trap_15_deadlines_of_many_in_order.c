// SPDX-License-Identifier: Apache-2.0
// Three threads set deadlines from the clock they read; they time out in the order of the
// deadlines, not in the order they began to wait.
#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static struct timespec base;
static int order[3], ended;

static void* wait_for_it(void* x) {
  const long i = (long)x;
  struct timespec until = timespec_of(base.tv_sec * 1000000000LL + base.tv_nsec + i * 20 * MS);
  pthread_mutex_lock(&mutex);
  CHECK_EQUAL(pthread_cond_timedwait(&never, &mutex, &until), ETIMEDOUT);
  order[ended++] = (int)i;
  pthread_mutex_unlock(&mutex);
  return x;
}

int main(void) {
  pthread_t t[3];
  base = in_ns(CLOCK_REALTIME, 20 * MS);
  for (long i = 0; i < 3; ++i) t[i] = start(wait_for_it, (void*)(2 - i));
  for (int i = 0; i < 3; ++i) join(t[i]);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(order[i], i);
  return succeed();
}
