// SPDX-License-Identifier: Apache-2.0
// native: no
// A changed place reads the time like an unchanged one: the same step from read to read, and a turn
// at the same reads.
#include "tsc.h"

enum { kSteps = 300 };

static __attribute__((noinline)) uint64_t read_changed(void) { return __rdtsc(); }
static __attribute__((noinline)) uint64_t read_trapped(void) {
  unsigned processor;
  return __rdtscp(&processor);
}

static void measure(uint64_t (*read)(void), uint64_t* steps) {
  sleep_ms(1);  // a turn: the count of reads begins again
  uint64_t last = read();
  for (int i = 0; i < kSteps; ++i) {
    const uint64_t now = read();
    steps[i] = now - last;
    last = now;
  }
}

int main(void) {
  uint64_t steps[2][kSteps];
  for (int i = 0; i < 2; ++i) measure(read_changed, steps[0]);
  measure(read_trapped, steps[1]);
  int turns = 0;
  for (int i = 0; i < kSteps; ++i) {
    turns += steps[1][i] != 1;
    CHECK_EQUAL(steps[0][i] != 1, steps[1][i] != 1);
  }
  printf("%d turns\n", turns);
  return succeed();
}
