// SPDX-License-Identifier: Apache-2.0
// A library is loaded at run time, closed, and loaded again at the same address: its computation is
// sliced each time (tests/e2e/sliced_programs.py has the points). The argument is the number of
// rounds.
//
// native: no
// args: 3
// build: -Wl,-rpath,$ORIGIN
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "small.h"

enum { kRounds = 3 * 1000 * 1000 };

typedef unsigned long (*Compute)(unsigned long);

int main(int count, char** words) {
  const int times = count > 1 ? atoi(words[1]) : 1;
  Compute first = NULL;
  for (int i = 0; i < times; ++i) {
    void* const library = dlopen("crane_slices_library", RTLD_NOW);
    CHECK(library != NULL);
    Compute compute;
    *(void**)&compute = dlsym(library, "compute");
    CHECK(compute != NULL);
    if (i == 0) first = compute;
    CHECK(compute == first);
    CHECK(compute(kRounds) != 0);
    CHECK_EQUAL(dlclose(library), 0);
  }
  return succeed();
}
