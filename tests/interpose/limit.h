// SPDX-License-Identifier: Apache-2.0
// For the programs that exhaust something: the native limit differs from Crane's, or is far away.
#ifndef TESTS_INTERPOSE_LIMIT_H
#define TESTS_INTERPOSE_LIMIT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <sys/resource.h>

#include "small.h"

// As many descriptors as the hard limit gives, up to `most`.
static inline void allow_descriptors(rlim_t most) {
  struct rlimit limit;
  CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// A refusal has one of these error numbers (a list that 0 ends).
static inline void check_refusal(int error, ...) {
  va_list allowed;
  va_start(allowed, error);
  int one;
  do {
    one = va_arg(allowed, int);
  } while (one != 0 && one != error);
  va_end(allowed);
  if (one == 0) printf("refused with error %d\n", error);
  CHECK(one != 0);
}

#endif
