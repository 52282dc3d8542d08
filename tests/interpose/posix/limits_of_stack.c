// SPDX-License-Identifier: Apache-2.0
// RLIMIT_STACK is the stack size of a new thread.
#define _GNU_SOURCE
#include <sys/resource.h>

#include "../small.h"

static void* size_of_stack(void* unused) {
  (void)unused;
  pthread_attr_t a;
  size_t n = 0;
  CHECK_EQUAL(pthread_getattr_np(pthread_self(), &a), 0);
  CHECK_EQUAL(pthread_attr_getstacksize(&a, &n), 0);
  CHECK_EQUAL(pthread_attr_destroy(&a), 0);
  return (void*)n;
}

int main(void) {
  struct rlimit r;
  CHECK_EQUAL(getrlimit(RLIMIT_STACK, &r), 0);
  const long n = elsewhere(size_of_stack, NULL);
  if (r.rlim_cur != RLIM_INFINITY) {
    CHECK(n >= (long)r.rlim_cur / 2 && n <= (long)r.rlim_cur + (1 << 20));
  }
  CHECK(sysconf(_SC_THREAD_STACK_MIN) >= 16384);
  return succeed();
}
