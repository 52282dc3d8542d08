// SPDX-License-Identifier: Apache-2.0
// Shared by the programs of this folder. They know nothing of Crane: plain C, without any Crane
// header. Each prints a deterministic outcome and ends with EXIT-SUCCESS.
#ifndef TESTS_INTERPOSE_CHECK_H
#define TESTS_INTERPOSE_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      printf("%s:%d: failed: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
      fflush(stdout);                                                                  \
      _exit(1);                                                                        \
    }                                                                                  \
  } while (0)

#define CHECK_EQUAL(a, b)                                                                \
  do {                                                                                   \
    const long long check_a = (long long)(a), check_b = (long long)(b);                  \
    if (check_a != check_b) {                                                            \
      printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, check_a, check_b); \
      fflush(stdout);                                                                    \
      _exit(1);                                                                          \
    }                                                                                    \
  } while (0)

static inline int succeed(void) {
  printf("EXIT-SUCCESS\n");
  fflush(stdout);
  return 0;
}

#endif
