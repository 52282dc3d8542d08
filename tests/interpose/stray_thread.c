// SPDX-License-Identifier: Apache-2.0
// A thread that was started past the library, by dlvsym, runs outside of the schedule: it is
// counted, once, by the object that it first calls the library from.  The processor's counter is
// the machine's there, also at a place that others have read often.
//
// solo: --unhooked
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <x86intrin.h>

#include "check.h"

typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

static pthread_mutex_t its_own = PTHREAD_MUTEX_INITIALIZER;
static volatile int done = 0;

static __attribute__((noinline)) unsigned long read_counter(void) { return __rdtsc(); }

static void* stray(void* x) {
  const unsigned long begun = read_counter();
  CHECK(begun > 1000000);  // not a thread's own time, which would be 0 here
  CHECK(read_counter() > begun + 1);
  for (int i = 0; i < 3; ++i) {
    pthread_mutex_lock(&its_own);
    pthread_mutex_unlock(&its_own);
  }
  done = 1;
  return x;
}

int main(void) {
  for (int i = 0; i < 50; ++i) read_counter();
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  CHECK(libc != NULL);
  const Create create = (Create)dlvsym(libc, "pthread_create", "GLIBC_2.34");
  CHECK(create != NULL);
  pthread_t t;
  CHECK_EQUAL(create(&t, NULL, stray, NULL), 0);
  // Nobody in the schedule is told of its end.
  while (!done) {
  }
  printf("it ran\n");
  return succeed();
}
