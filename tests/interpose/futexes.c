// SPDX-License-Identifier: Apache-2.0
// futex(2) through syscall(2): changed values, time-outs of both kinds, bits, requeueing, an
// operation on a second word, words shared between processes, signals, and refused arguments.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static long futex(void* word, int op, unsigned value, const void* time, void* other,
                  unsigned value3) {
  return syscall(SYS_futex, word, op, value, time, other, value3);
}

static atomic_uint word, second;
static atomic_int asleep, woken;

static void values_and_times(void) {
  word = 1;
  CHECK_EQUAL(futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0), -1);
  CHECK_EQUAL(errno, EAGAIN);
  const struct timespec nap = {0, 5000000};
  CHECK_EQUAL(futex(&word, FUTEX_WAIT_PRIVATE, 1, &nap, NULL, 0), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  struct timespec before, after;
  for (int wall = 0; wall < 2; ++wall) {
    const clockid_t clock = wall ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    clock_gettime(clock, &before);
    struct timespec at = before;
    at.tv_nsec += 5000000;
    if (at.tv_nsec >= 1000000000) ++at.tv_sec, at.tv_nsec -= 1000000000;
    const int op = FUTEX_WAIT_BITSET_PRIVATE | (wall ? FUTEX_CLOCK_REALTIME : 0);
    CHECK_EQUAL(futex(&word, op, 1, &at, NULL, FUTEX_BITSET_MATCH_ANY), -1);
    CHECK_EQUAL(errno, ETIMEDOUT);
    clock_gettime(clock, &after);
    CHECK((after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec >=
          5000000);
  }
  const struct timespec past = {0, 0}, wrong = {0, 1000000000};
  CHECK_EQUAL(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 1, &past, NULL, 1), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  CHECK_EQUAL(futex(&word, FUTEX_WAIT_PRIVATE, 1, &wrong, NULL, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 1, NULL, NULL, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(futex((char*)&word + 1, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);
  printf("values and times\n");
}

// Waiters that record with which bits they sleep, and how they were woken.
struct Waiter {
  pthread_t thread;
  unsigned bits;
  atomic_int state;  // 0 awake, 1 woken
};

static void* sleeper(void* given) {
  struct Waiter* w = given;
  atomic_fetch_add(&asleep, 1);
  while (futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, w->bits) != 0) {
    CHECK(errno == EAGAIN || errno == EINTR);
    if (errno == EAGAIN) break;
  }
  w->state = 1;
  atomic_fetch_add(&woken, 1);
  return NULL;
}

static void start(struct Waiter* w, int n, const unsigned* bits) {
  word = second = 0;
  asleep = woken = 0;
  for (int i = 0; i < n; ++i) {
    w[i].bits = bits ? bits[i] : FUTEX_BITSET_MATCH_ANY;
    w[i].state = 0;
    CHECK_EQUAL(pthread_create(&w[i].thread, NULL, sleeper, &w[i]), 0);
    while (asleep != i + 1) sched_yield();
    usleep(20000);  // until it sleeps in the kernel, in the order of the numbers
  }
}

static void until(int n) {
  for (int i = 0; i < 5000 && woken != n; ++i) usleep(1000);
  CHECK_EQUAL(woken, n);
}

static void bits(void) {
  struct Waiter w[3];
  const unsigned which[3] = {1, 2, 3};
  start(w, 3, which);
  CHECK_EQUAL(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 9, NULL, NULL, 4), 0);
  CHECK_EQUAL(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 2), 1);
  until(1);
  CHECK_EQUAL(w[1].state, 1);
  CHECK_EQUAL(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 9, NULL, NULL, 1), 2);
  until(3);
  for (int i = 0; i < 3; ++i) pthread_join(w[i].thread, NULL);
  printf("bits\n");
}

static void requeueing(void) {
  struct Waiter w[4];
  start(w, 4, NULL);
  CHECK_EQUAL(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void*)2L, &second, 7), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void*)2L, &second, 0), 3);
  until(1);
  CHECK_EQUAL(w[0].state, 1);
  CHECK_EQUAL(futex(&second, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 1);
  until(2);
  CHECK_EQUAL(w[1].state, 1);
  CHECK_EQUAL(futex(&word, FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0), 1);
  until(3);
  CHECK_EQUAL(w[3].state, 1);
  CHECK_EQUAL(futex(&second, FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0), 1);
  until(4);
  for (int i = 0; i < 4; ++i) pthread_join(w[i].thread, NULL);
  printf("requeueing\n");
}

static void second_word(void) {
  struct Waiter w[2];
  start(w, 2, NULL);
  second = 5;
  // second += 3; wakes one of `second` always, and of `word` if it was greater than 4
  const unsigned add = FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_GT, 4);
  CHECK_EQUAL(futex(&second, FUTEX_WAKE_OP_PRIVATE, 1, (void*)1L, &word, add), 0);
  CHECK_EQUAL(word, 3);
  CHECK_EQUAL(futex(&word, FUTEX_WAKE_OP_PRIVATE, 1, (void*)1L, &second, add), 1);
  CHECK_EQUAL(second, 8);
  until(1);
  const unsigned take = FUTEX_OP(FUTEX_OP_ANDN, 3, FUTEX_OP_CMP_EQ, 3);
  CHECK_EQUAL(futex(&second, FUTEX_WAKE_OP_PRIVATE, 1, (void*)1L, &word, take), 1);
  CHECK_EQUAL(word, 0);
  until(2);
  const unsigned shifted = FUTEX_OP_SET | FUTEX_OP_OPARG_SHIFT;
  const unsigned shift = FUTEX_OP(shifted, 4, FUTEX_OP_CMP_LT, -1);
  CHECK_EQUAL(futex(&second, FUTEX_WAKE_OP_PRIVATE, 1, (void*)1L, &word, shift), 0);
  CHECK_EQUAL(word, 16);
  const unsigned less = FUTEX_OP(FUTEX_OP_ADD, -2, FUTEX_OP_CMP_LE, -1);
  CHECK_EQUAL(futex(&second, FUTEX_WAKE_OP_PRIVATE, 1, (void*)1L, &word, less), 0);
  CHECK_EQUAL(word, 14);
  for (int i = 0; i < 2; ++i) pthread_join(w[i].thread, NULL);
  printf("second word\n");
}

static void processes(void) {
  atomic_uint* shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  const pid_t child = fork();
  if (child == 0) {
    while (*shared == 0) futex(shared, FUTEX_WAIT, 0, NULL, NULL, 0);
    _exit(*shared == 7 ? 0 : 1);
  }
  usleep(10000);
  *shared = 7;
  futex(shared, FUTEX_WAKE, 1, NULL, NULL, 0);
  int status = -1;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  printf("processes\n");
}

static void on_signal(int s) { (void)s; }

static void signals(void) {
  struct sigaction a = {0};
  a.sa_handler = on_signal;
  CHECK_EQUAL(sigaction(SIGALRM, &a, NULL), 0);
  word = 1;
  alarm(1);
  CHECK_EQUAL(futex(&word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(futex(&word, 200, 1, NULL, NULL, 0), -1);
  CHECK_EQUAL(errno, ENOSYS);
  printf("signals\n");
}

int main(void) {
  values_and_times();
  bits();
  requeueing();
  second_word();
  processes();
  signals();
  return succeed();
}
