// SPDX-License-Identifier: Apache-2.0
// For programs that a simulated branch counter slices (runtime/preload/turn/branch_counter.h):
// BRANCH() is called where a processor would count a branch.
#ifndef BRANCHES_H
#define BRANCHES_H

#include <stdint.h>
#include <sys/mman.h>

struct branches {
  volatile uint64_t count;
  volatile uint64_t gate;  // stops the program until the interrupt has come
  uint32_t thread;
  uint32_t unused[11];
};

#define BRANCHES_AT ((struct branches*)0x1000000000)
#define BRANCHES_MAX 61

// Without Crane they are not mapped yet.
static inline void branches_prepare(void) {
  (void)mmap(BRANCHES_AT, sizeof(struct branches) * BRANCHES_MAX, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static inline struct branches* own_branches(void) {
  return &BRANCHES_AT[((uintptr_t)__builtin_thread_pointer() >> 12) % BRANCHES_MAX];
}

static inline void branch(struct branches* own) {
  own->count++;
  while (own->count == own->gate) __builtin_ia32_pause();
}

#endif
