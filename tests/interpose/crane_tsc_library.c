// SPDX-License-Identifier: Apache-2.0
// A library of tsc_of_library.c: it reads the processor's counter at one place.
//
// build: -shared -fPIC
#include <x86intrin.h>

unsigned long read_counter(void) { return __rdtsc(); }
