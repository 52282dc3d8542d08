// SPDX-License-Identifier: Apache-2.0
// A library of found_by_name.c. It looks up the next definition, as jemalloc does for its
// background thread. It also defines two functions that wrap libc's: one looks up the next
// definition, the other uses libc's handle.
//
// build: -shared -fPIC
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

int wrapped = 0, wrapped_by_handle = 0;

void* next_of(const char* name) { return dlsym(RTLD_NEXT, name); }

int pthread_mutex_consistent(pthread_mutex_t* m) {
  ++wrapped;
  typedef int (*Consistent)(pthread_mutex_t*);
  return ((Consistent)dlsym(RTLD_NEXT, "pthread_mutex_consistent"))(m);
}

int fchdir(int fd) {
  if (++wrapped_by_handle > 1) return -1;  // called from within itself
  typedef int (*Fchdir)(int);
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  return ((Fchdir)dlsym(libc, "fchdir"))(fd);
}
