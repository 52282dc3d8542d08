// SPDX-License-Identifier: Apache-2.0
// Shared by the racy programs. Their outcome depends on the interleaving of unsynchronised
// accesses: they are wrong on purpose, but must give one result in serial mode.
#ifndef TESTS_INTERPOSE_RACY_RACY_H
#define TESTS_INTERPOSE_RACY_RACY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Long enough for threads to meet in it.
static inline void work(int rounds) {
  for (volatile int i = 0; i < 100 * rounds; ++i) {
  }
}

static inline unsigned next_random(unsigned* state) {
  *state = *state * 1103515245u + 12345u;
  return *state >> 16;
}

struct RacyThread {
  pthread_barrier_t* start;
  void* (*routine)(void*);
  long number;
};

static inline void* racy_run(void* given) {
  const struct RacyThread* t = given;
  pthread_barrier_wait(t->start);
  return t->routine((void*)t->number);
}

// Runs `routine` in `count` threads, which get their numbers, all at once.
static inline void run_threads(long count, void* (*routine)(void*)) {
  pthread_barrier_t barrier;
  pthread_t t[16];
  struct RacyThread racy[16];
  pthread_barrier_init(&barrier, NULL, (unsigned)count);
  for (long i = 0; i < count; ++i) {
    racy[i] = (struct RacyThread){&barrier, routine, i};
    pthread_create(&t[i], NULL, racy_run, &racy[i]);
  }
  for (long i = 0; i < count; ++i) pthread_join(t[i], NULL);
}

#endif
