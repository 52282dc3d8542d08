// SPDX-License-Identifier: Apache-2.0
// A library is loaded at run time, closed, and loaded again at the same address: each time it reads
// the program's counter.
//
// native: no
// build: -Wl,-rpath,$ORIGIN
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <sys/mman.h>

#include "posix/tsc.h"

enum { kRounds = 3 };

typedef unsigned long (*Read)(void);

// RDTSC, or the jump that is there now.
static int reads_through_jump(Read read) {
  const unsigned char* code = (const unsigned char*)(uintptr_t)read;
  for (int i = 0; i < 32; ++i) {
    if (code[i] == 0x0f && code[i + 1] == 0x31) return 0;
    if (is_changed(code + i)) return 1;
  }
  return -1;
}

int main(void) {
  unsigned long last = 0;
  Read first = NULL;
  for (int r = 0; r < kRounds; ++r) {
    void* const library = dlopen("crane_tsc_library", RTLD_NOW);
    CHECK(library != NULL);
    Read read;
    *(void**)&read = dlsym(library, "read_counter");
    CHECK(read != NULL);
    if (r == 0) first = read;
    CHECK(read == first);
    CHECK_EQUAL(reads_through_jump(read), 0);
    for (int i = 0; i < READS; ++i) {
      const unsigned long now = read();
      CHECK(now > last);
      last = now;
    }
    CHECK_EQUAL(reads_through_jump(read), 1);
    CHECK_EQUAL(dlclose(library), 0);
  }
  return succeed();
}
