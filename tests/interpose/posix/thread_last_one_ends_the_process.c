// SPDX-License-Identifier: Apache-2.0
// When main and the last thread have called pthread_exit, exit handlers run and the status is 0.
#include "../small.h"

static void at_end(void) {
  printf("handler\n");
  fflush(stdout);
}
static void* end(void* x) {
  sleep_ms(3);
  pthread_exit(x);
}

int main(void) {
  atexit(at_end);
  start(end, (void*)1);
  start(end, (void*)2);
  pthread_exit((void*)7);
}
