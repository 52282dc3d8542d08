// SPDX-License-Identifier: Apache-2.0
// For the programs that read the processor's counter (tsc_*.c).
#ifndef TESTS_INTERPOSE_POSIX_TSC_H
#define TESTS_INTERPOSE_POSIX_TSC_H

#include <x86intrin.h>

#include "../small.h"

// Enough for a place to be changed.
#define READS 100

// Whether the counter is a virtual clock, as libc's.
static inline int is_virtual(void) {
  unsigned processor;
  const long long before = now_ns(CLOCK_MONOTONIC), count = (long long)__rdtscp(&processor);
  return before <= count && count <= now_ns(CLOCK_MONOTONIC);
}

// The code at a place that was read often enough begins with a jump when somebody changed it.
static inline int is_changed(const void* site) { return *(const unsigned char*)site == 0xe9; }

#endif
