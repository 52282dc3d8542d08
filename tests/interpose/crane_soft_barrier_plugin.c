// SPDX-License-Identifier: Apache-2.0
// A library of soft_barrier_points.c that is loaded while it runs.
//
// build: -shared -fPIC
#include "soft_barrier_points.h"

Vector plugin_function(Note note, Vector a, Vector b, long double c) {
  const Vector third = {(int)c, (int)c, (int)c, (int)c};
  note('c');
  return a + b + third;
}
