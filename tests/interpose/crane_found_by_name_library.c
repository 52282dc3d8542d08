// SPDX-License-Identifier: Apache-2.0
// A library of found_by_name.c: it asks for the next definition, as jemalloc does for its
// background thread, and has one of its own, which wraps libc's.
//
// build: -shared -fPIC
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

int wrapped = 0;

void* next_of(const char* name) { return dlsym(RTLD_NEXT, name); }

int pthread_mutex_consistent(pthread_mutex_t* m) {
  ++wrapped;
  typedef int (*Consistent)(pthread_mutex_t*);
  return ((Consistent)dlsym(RTLD_NEXT, "pthread_mutex_consistent"))(m);
}
