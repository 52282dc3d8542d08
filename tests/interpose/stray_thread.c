// SPDX-License-Identifier: Apache-2.0
// A thread started by dlvsym bypasses the library and runs outside the schedule. It is counted
// once, under the object from which it first calls the library. It reads the machine's own counter,
// also at a place that other threads have read often.
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
  CHECK(begun > 1000000);  // not a thread's own time, which would be 0
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
  // No thread of the schedule sees its end.
  while (!done) {
  }
  printf("it ran\n");
  return succeed();
}
