// SPDX-License-Identifier: Apache-2.0
// A library of soft_barrier_points.c that its program is linked with.
//
// build: -shared -fPIC
#include <stdarg.h>

#include "soft_barrier_points.h"

double linked_function(Note note, long b, long c, long d, long e, long f, long g, long h, double p,
                       double q, double r, double s, double t, double u, double v, double w,
                       double x, double y, struct Triple triple, int more, ...) {
  double sum = (double)(b + c + d + e + f + g + h) + p + q + r + s + t + u + v + w + x + y;
  sum += (double)(triple.x + triple.y + triple.z);
  va_list rest;
  va_start(rest, more);
  for (int i = 0; i < more; ++i) sum += va_arg(rest, int);
  va_end(rest);
  note('c');
  return sum;
}
