// SPDX-License-Identifier: Apache-2.0
// exit runs the functions of atexit, the last first, and flushes the streams; _exit does neither.
#define _GNU_SOURCE
#include "../child.h"

static void first(void) { printf("first\n"); }
static void second(void) { printf("second\n"); }
static int by_exit(int x) {
  atexit(first);
  atexit(second);
  exit(x);
}
static int by_underscore_exit(int x) {
  atexit(first);
  printf("never written\n");
  return x;
}

int main(void) {
  fflush(stdout);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(by_exit, 8))), 8);
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(by_underscore_exit, 9))), 9);
  return succeed();
}
