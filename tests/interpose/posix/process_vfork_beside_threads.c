// SPDX-License-Identifier: Apache-2.0
// vfork in one thread while another runs: the other continues and keeps its writes; the caller sees
// its child's writes to its stack and to errno.
#define _GNU_SOURCE
#include <errno.h>

#include "../child.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long counted;
static volatile int ended;
static volatile long* beside;  // on the caller's stack

static void* count(void* given) {
  (void)given;
  while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) == 0) {
    pthread_mutex_lock(&lock);
    ++counted;
    if (beside != NULL) ++*beside;
    pthread_mutex_unlock(&lock);
    sleep_ms(1);
  }
  return NULL;
}

static long counts(void) {
  pthread_mutex_lock(&lock);
  const long n = counted;
  pthread_mutex_unlock(&lock);
  return n;
}

static void* spawn(void* given) {
  (void)given;
  for (int i = 0; i < 3; ++i) {
    volatile int error = 0;
    volatile long by_other = 0;
    pthread_mutex_lock(&lock);
    beside = &by_other;
    const long counted_before = counted;
    pthread_mutex_unlock(&lock);
    const pid_t p = vfork();
    CHECK(p >= 0);
    if (p == 0) {
      sleep_ms(20);
      execl("/nonexistent/program", "program", (char*)NULL);
      error = errno;
      _exit(9);
    }
    CHECK_EQUAL(error, ENOENT);
    CHECK_EQUAL(errno, ENOENT);
    pthread_mutex_lock(&lock);
    CHECK(by_other > 0);  // its writer continued meanwhile
    CHECK_EQUAL(by_other, counted - counted_before);
    beside = NULL;
    pthread_mutex_unlock(&lock);
    CHECK_EQUAL(WEXITSTATUS(status_of(p)), 9);
  }
  return NULL;
}

int main(void) {
  const pthread_t other = start(count, NULL);
  spawn(NULL);
  CHECK_EQUAL(elsewhere(spawn, NULL), 0);
  CHECK(counts() > 0);
  __atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
  join(other);
  // In a process that has one thread again all memory is shared.
  volatile int alone = 0;
  const pid_t p = vfork();
  if (p == 0) {
    alone = 1;
    counted = -1;
    _exit(0);
  }
  CHECK_EQUAL(alone, 1);
  CHECK_EQUAL(counted, -1);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 0);
  return succeed();
}
