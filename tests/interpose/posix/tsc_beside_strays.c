// SPDX-License-Identifier: Apache-2.0
// Threads outside the schedule execute the very places that another thread reads, while these are
// changed: the first half of each, and, by a jump, the second.
#define _GNU_SOURCE
#include <dlfcn.h>

#include "tsc.h"

enum { kSites = 24, kStrays = 2 };

PLACES(24);

typedef uint64_t (*Way)(uint64_t);
typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

static volatile int current, ended;
static volatile uint64_t rounds[kStrays], wrong[kStrays];

static void* stray(void* given) {
  const long number = (long)given;
  for (uint64_t last = 0; !ended;) {
    const char* place = places + 32 * current;
    for (uint64_t i = 0; i < 8; ++i) {
      const uint64_t now = ((Way)(uintptr_t)place)(0);
      wrong[number] += now < last;
      last = now;
      wrong[number] += ((Way)(uintptr_t)(place + 16))(i) != i;
    }
    rounds[number] += 1;
  }
  rounds[number] = 0;
  return NULL;
}

static void wait_for_strays(void) {
  for (int i = 0; i < kStrays; ++i) {
    const uint64_t seen = rounds[i];
    while (rounds[i] < seen + 2) {
    }
  }
}

int main(void) {
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  CHECK(libc != NULL);
  const Create create = (Create)dlvsym(libc, "pthread_create", "GLIBC_2.34");
  CHECK(create != NULL);
  pthread_t threads[kStrays];
  for (long i = 0; i < kStrays; ++i) {
    CHECK_EQUAL(create(&threads[i], NULL, stray, (void*)i), 0);
  }
  uint64_t last = 0;
  for (int s = 0; s < kSites; ++s) {
    current = s;
    wait_for_strays();
    for (int i = 0; i < READS; ++i) {
      const uint64_t now = ((Way)(uintptr_t)(places + 32 * s))(0);
      CHECK(now > last);
      last = now;
    }
    wait_for_strays();
    CHECK_EQUAL(is_changed(places + 32 * s), is_virtual());
  }
  ended = 1;
  for (int i = 0; i < kStrays; ++i) {
    while (rounds[i] != 0) {
    }
    CHECK_EQUAL(wrong[i], 0);
  }
  return succeed();
}
