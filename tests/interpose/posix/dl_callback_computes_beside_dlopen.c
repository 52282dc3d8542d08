// SPDX-License-Identifier: Apache-2.0
// A callback of dl_iterate_phdr computes, with ld.so's lock held, while another thread opens and
// closes a library: that thread waits for the lock in libc, whichever thread has the turn. (With
// time slices no turn is given away in the callback.)
// parallel: no
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>

#include "../small.h"

enum { kRounds = 20, kLoops = 500 };

static volatile long sum;

static int compute(struct dl_phdr_info* info, size_t size, void* objects) {
  (void)info;
  (void)size;
  ++*(int*)objects;
  for (int i = 0; i < kLoops; ++i) sum += (sum ^ i) % 1000003 + i * 7;
  return 0;
}

static void* open_and_close(void* x) {
  for (int i = 0; i < kRounds; ++i) {
    void* const library = dlopen("libm.so.6", RTLD_NOW);
    CHECK(library != NULL);
    CHECK_EQUAL(dlclose(library), 0);
    sched_yield();
  }
  return x;
}

int main(void) {
  const pthread_t t = start(open_and_close, NULL);
  for (int i = 0; i < kRounds; ++i) {
    int objects = 0;
    dl_iterate_phdr(compute, &objects);
    CHECK(objects > 1);
    for (int k = 0; k < kLoops; ++k) sum += (sum ^ k) % 1000003 + k * 5;
  }
  join(t);
  return succeed();
}
