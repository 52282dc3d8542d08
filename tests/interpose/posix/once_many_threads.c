// SPDX-License-Identifier: Apache-2.0
// Many threads, several once variables: each routine runs once.
#include "../small.h"

static pthread_once_t once[3] = {PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT};
static int runs[3];
static void zero(void) { ++runs[0]; }
static void one(void) { ++runs[1]; }
static void two(void) { ++runs[2]; }
static void* enter(void* x) {
  void (*const routines[3])(void) = {zero, one, two};
  for (long i = 0; i < 9; ++i) {
    const long k = (i + (long)x) % 3;
    CHECK_EQUAL(pthread_once(&once[k], routines[k]), 0);
  }
  return x;
}

int main(void) {
  pthread_t t[8];
  for (long i = 0; i < 8; ++i) t[i] = start(enter, (void*)i);
  for (int i = 0; i < 8; ++i) join(t[i]);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(runs[i], 1);
  return succeed();
}
