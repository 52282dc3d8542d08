// SPDX-License-Identifier: Apache-2.0
// Functions for the programs that read the processor's counter (tsc_*.c).
#ifndef TESTS_INTERPOSE_POSIX_TSC_H
#define TESTS_INTERPOSE_POSIX_TSC_H

#include <x86intrin.h>

#include "../small.h"

// Enough reads for a place to be changed.
#define READS 100

// Whether the counter is a virtual clock, like libc's.
static inline int is_virtual(void) {
  unsigned processor;
  const long long before = now_ns(CLOCK_MONOTONIC), count = (long long)__rdtscp(&processor);
  return before <= count && count <= now_ns(CLOCK_MONOTONIC);
}

// libcrane.so puts a jump at the beginning of a place that was read often enough.
static inline int is_changed(const void* site) { return *(const unsigned char*)site == 0xe9; }

// `count` places to read at, of 32 bytes each: the read sequence begins at 0; at 16 begins one that
// jumps past the first instruction.
// clang-format off
#define PLACES(count)                                      \
  __asm__(                                                 \
      ".text\n .p2align 5\n .globl places\n"               \
      "places:\n"                                          \
      ".rept " #count "\n"                                 \
      "  .p2align 5\n"                                     \
      "  rdtsc\n"                                          \
      "1: shl $32, %rdx\n or %rdx, %rax\n ret\n"          \
      "  .p2align 4\n"                                     \
      "  mov %rdi, %rax\n xor %edx, %edx\n jmp 1b\n"      \
      ".endr\n");                                          \
  extern const char places[]
// clang-format on

#endif
