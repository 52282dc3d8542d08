// SPDX-License-Identifier: Apache-2.0
// A signal handler changes what the interrupted thread is about to write.
#define _GNU_SOURCE
#include <signal.h>

#include "racy.h"

static volatile long shared, from_handler, seen;
static pthread_t target;
static volatile int stop;
static void change(int signo) {
  (void)signo;
  from_handler = (from_handler * 31 + shared) % 1000003;
  shared += 1000;
}
static void* run(void* x) {
  if ((long)x == 0) {
    target = pthread_self();
    for (int i = 0; i < 300; ++i) {
      const long s = shared;
      if (i % 5 == 0) sched_yield();
      work(80);
      shared = s + 1;
      seen = (seen * 7 + shared) % 1000003;
    }
    stop = 1;
  } else {
    for (int i = 0; i < 40 && !stop; ++i) {
      work(500);
      if (target != 0) pthread_kill(target, SIGUSR1);
    }
  }
  return NULL;
}
int main(void) {
  signal(SIGUSR1, change);
  run_threads(2, run);
  printf("shared %ld, handler %ld, seen %ld\n", shared, from_handler, seen);
  return 0;
}
