// SPDX-License-Identifier: Apache-2.0
// pthread_join returns the routine's result or the value passed to pthread_exit.
#include "../small.h"

static void* give_back(void* x) { return x; }
static void* exit_with(void* x) { pthread_exit(x); }

int main(void) {
  CHECK_EQUAL(elsewhere(give_back, (void*)5), 5);
  CHECK_EQUAL(elsewhere(exit_with, (void*)6), 6);
  CHECK_EQUAL(pthread_join(start(give_back, NULL), NULL), 0);
  return succeed();
}
