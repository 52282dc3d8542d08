// SPDX-License-Identifier: Apache-2.0
// For the programs of one behaviour each (traps/, posix/): helpers that most of them need.
#ifndef TESTS_INTERPOSE_SMALL_H
#define TESTS_INTERPOSE_SMALL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "check.h"

#define MS 1000000L

static inline pthread_t start(void* (*routine)(void*), void* argument) {
  pthread_t t;
  CHECK_EQUAL(pthread_create(&t, NULL, routine, argument), 0);
  return t;
}

static inline void* join(pthread_t t) {
  void* result = NULL;
  CHECK_EQUAL(pthread_join(t, &result), 0);
  return result;
}

// The result of a routine that runs in a separate thread.
static inline long elsewhere(void* (*routine)(void*), void* argument) {
  return (long)join(start(routine, argument));
}

static inline long long now_ns(clockid_t clock) {
  struct timespec t;
  CHECK_EQUAL(clock_gettime(clock, &t), 0);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline struct timespec timespec_of(long long ns) {
  const struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
  return t;
}

// The absolute time `ns` from now.
static inline struct timespec in_ns(clockid_t clock, long long ns) {
  return timespec_of(now_ns(clock) + ns);
}

static inline void sleep_ms(long ms) {
  const struct timespec t = timespec_of(ms * MS);
  CHECK_EQUAL(nanosleep(&t, NULL), 0);
}

static inline sigset_t set_of_signal(int signo) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signo);
  return set;
}

static inline void block_signal(int signo) {
  const sigset_t set = set_of_signal(signo);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
}

static inline void unblock_signal(int signo) {
  const sigset_t set = set_of_signal(signo);
  CHECK_EQUAL(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
}

static inline void handle(int signo, void (*handler)(int), int flags) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = handler;
  a.sa_flags = flags;
  CHECK_EQUAL(sigaction(signo, &a, NULL), 0);
}

// Signals the thread that began it, repeatedly until it is ended, because a signal that comes
// before the call interrupts nothing.
struct Interruptions {
  pthread_t target, thread;
  int ended;
};

static inline void ignore_ring(int signo) { (void)signo; }

static inline void* ring_again(void* given) {
  struct Interruptions* i = given;
  do {
    sleep_ms(10);
    CHECK_EQUAL(pthread_kill(i->target, SIGUSR1), 0);
  } while (__atomic_load_n(&i->ended, __ATOMIC_SEQ_CST) == 0);
  return NULL;
}

static inline void begin_interruptions(struct Interruptions* i, int flags) {
  handle(SIGUSR1, ignore_ring, flags);
  i->target = pthread_self();
  i->ended = 0;
  i->thread = start(ring_again, i);
}

static inline void end_interruptions(struct Interruptions* i) {
  __atomic_store_n(&i->ended, 1, __ATOMIC_SEQ_CST);
  join(i->thread);
}

#endif
