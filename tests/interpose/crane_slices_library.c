// SPDX-License-Identifier: Apache-2.0
// A library of slices_of_library.c: it computes.
//
// build: -shared -fPIC
unsigned long compute(unsigned long rounds) {
  unsigned long x = 88172645463325252ul;
  for (unsigned long i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}
