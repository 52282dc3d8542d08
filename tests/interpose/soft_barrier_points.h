// SPDX-License-Identifier: Apache-2.0
// Exports of the libraries of soft_barrier_points.c. Their arguments fill all argument registers
// and part of the stack.
#ifndef TESTS_INTERPOSE_SOFT_BARRIER_POINTS_H
#define TESTS_INTERPOSE_SOFT_BARRIER_POINTS_H

struct Triple {
  long x, y, z;
};
typedef void (*Note)(char);

// Calls note('c'), and returns the sum of all the others; `more` integers follow.
double linked_function(Note note, long b, long c, long d, long e, long f, long g, long h, double p,
                       double q, double r, double s, double t, double u, double v, double w,
                       double x, double y, struct Triple triple, int more, ...);

typedef int Vector __attribute__((vector_size(16)));
// Calls note('c'), and returns the sums of the other arguments.
typedef Vector PluginFunction(Note note, Vector a, Vector b, long double c);

#endif
