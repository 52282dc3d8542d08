// SPDX-License-Identifier: Apache-2.0
// futex_waitv: a thread waits for several words, and learns which one woke it; a wake-up counts it
// as any other waiter; deadlines of both clocks, other values and wrong arguments end the wait.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../small.h"

#define WORDS 3
static uint32_t words[WORDS];
static int woken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fill(struct futex_waitv* v) {
  memset(v, 0, WORDS * sizeof *v);
  for (int i = 0; i < WORDS; ++i) {
    v[i].uaddr = (uintptr_t)&words[i];
    v[i].flags = FUTEX_32 | FUTEX_PRIVATE_FLAG;
  }
}

static long wait_any(struct futex_waitv* v, unsigned n, unsigned flags, struct timespec* t,
                     clockid_t clock) {
  return syscall(SYS_futex_waitv, v, n, flags, t, clock);
}

static long wake(int word, int count) {
  return syscall(SYS_futex, &words[word], FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count);
}

static void* wait_once(void* unused) {
  struct futex_waitv v[WORDS];
  fill(v);
  const long index = wait_any(v, WORDS, 0, NULL, 0);
  pthread_mutex_lock(&lock);
  ++woken;
  pthread_mutex_unlock(&lock);
  return unused == NULL ? (void*)index : NULL;
}

// Wakes until all waiters have arrived.
static void wake_all(int word, int count) {
  while (count > 0) {
    const long n = wake(word, count);
    CHECK(n >= 0 && n <= count);
    count -= (int)n;
    if (count > 0) sleep_ms(1);
  }
}

static void fails_with(int error, long result) {
  CHECK_EQUAL(result, -1);
  CHECK_EQUAL(errno, error);
}

static void wrong_arguments(void) {
  struct futex_waitv v[WORDS];
  fill(v);
  fails_with(EINVAL, wait_any(v, WORDS, 1, NULL, 0));
  fails_with(EINVAL, wait_any(v, 0, 0, NULL, 0));
  fails_with(EINVAL, wait_any(v, FUTEX_WAITV_MAX + 1, 0, NULL, 0));
  fails_with(EINVAL, wait_any(NULL, WORDS, 0, NULL, 0));
  struct timespec t = in_ns(CLOCK_MONOTONIC, MS);
  fails_with(EINVAL, wait_any(v, WORDS, 0, &t, CLOCK_BOOTTIME));
  t.tv_nsec = 1000000000;
  fails_with(EINVAL, wait_any(v, WORDS, 0, &t, CLOCK_MONOTONIC));
  v[1].flags = FUTEX_PRIVATE_FLAG;
  fails_with(EINVAL, wait_any(v, WORDS, 0, NULL, 0));
  fill(v);
  v[2].__reserved = 1;
  fails_with(EINVAL, wait_any(v, WORDS, 0, NULL, 0));
  fill(v);
  v[2].uaddr += 2;
  fails_with(EINVAL, wait_any(v, WORDS, 0, NULL, 0));
  fill(v);
  v[2].val = 9;
  fails_with(EAGAIN, wait_any(v, WORDS, 0, NULL, 0));
}

static void deadlines(void) {
  struct futex_waitv v[WORDS];
  fill(v);
  const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
  for (int i = 0; i < 2; ++i) {
    struct timespec t = in_ns(clocks[i], 20 * MS);
    fails_with(ETIMEDOUT, wait_any(v, WORDS, 0, &t, clocks[i]));
    CHECK(now_ns(clocks[i]) >= t.tv_sec * 1000000000LL + t.tv_nsec);
  }
}

int main(void) {
  wrong_arguments();
  deadlines();
  for (int word = 0; word < WORDS; ++word) {
    const pthread_t t = start(wait_once, NULL);
    wake_all(word, 1);
    CHECK_EQUAL((long)join(t), word);
  }
  CHECK_EQUAL(wake(1, 1), 0);
  pthread_t many[4];
  for (int i = 0; i < 4; ++i) many[i] = start(wait_once, NULL);
  wake_all(2, 4);
  for (int i = 0; i < 4; ++i) CHECK_EQUAL((long)join(many[i]), 2);
  CHECK_EQUAL(woken, WORDS + 4);
  struct Interruptions ring;
  begin_interruptions(&ring, 0);
  struct futex_waitv v[WORDS];
  fill(v);
  fails_with(EINTR, wait_any(v, WORDS, 0, NULL, 0));
  end_interruptions(&ring);
  return succeed();
}
