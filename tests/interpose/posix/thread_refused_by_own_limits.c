// SPDX-License-Identifier: Apache-2.0
// The program's own requests and limits make pthread_create fail with EAGAIN, repeatedly, and the
// program continues: a stack larger than the address space, a limit of its addresses.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>

#include "../small.h"

static void* nothing(void* x) { return x; }

static int created(const pthread_attr_t* attributes) {
  pthread_t thread;
  const int error = pthread_create(&thread, attributes, nothing, NULL);
  if (error == 0) CHECK_EQUAL(pthread_join(thread, NULL), 0);
  return error;
}

int main(void) {
  pthread_attr_t huge;
  CHECK_EQUAL(pthread_attr_init(&huge), 0);
  CHECK_EQUAL(pthread_attr_setstacksize(&huge, (size_t)1 << 48), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(created(&huge), EAGAIN);
  pthread_attr_t large;
  CHECK_EQUAL(pthread_attr_init(&large), 0);
  CHECK_EQUAL(pthread_attr_setstacksize(&large, (size_t)4 << 30), 0);
  struct rlimit limit;
  CHECK_EQUAL(getrlimit(RLIMIT_AS, &limit), 0);
  limit.rlim_cur = (rlim_t)2 << 30;
  CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(created(&large), EAGAIN);
  limit.rlim_cur = limit.rlim_max;
  CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
  CHECK_EQUAL(created(NULL), 0);
  return succeed();
}
