// SPDX-License-Identifier: Apache-2.0
// Shared mutexes, conditions and read-write locks time out and are handed over between processes.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../child.h"

static struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  pthread_rwlock_t lock;
  sem_t held, done;
  int turn;
} * shared;

static int holds(int unused) {
  CHECK_EQUAL(pthread_mutex_lock(&shared->mutex), 0);
  CHECK_EQUAL(pthread_rwlock_wrlock(&shared->lock), 0);
  CHECK_EQUAL(sem_post(&shared->held), 0);
  CHECK_EQUAL(sem_wait(&shared->done), 0);
  CHECK_EQUAL(pthread_rwlock_unlock(&shared->lock), 0);
  for (int i = 0; i < 10; ++i) {
    while (shared->turn % 2 == 0) pthread_cond_wait(&shared->condition, &shared->mutex);
    ++shared->turn;
    CHECK_EQUAL(pthread_cond_signal(&shared->condition), 0);
  }
  CHECK_EQUAL(pthread_mutex_unlock(&shared->mutex), 0);
  return unused;
}

int main(void) {
  pthread_mutexattr_t m;
  pthread_condattr_t c;
  pthread_rwlockattr_t l;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  pthread_mutexattr_init(&m);
  pthread_condattr_init(&c);
  pthread_rwlockattr_init(&l);
  CHECK_EQUAL(pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQUAL(pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQUAL(pthread_condattr_setclock(&c, CLOCK_MONOTONIC), 0);
  CHECK_EQUAL(pthread_rwlockattr_setpshared(&l, PTHREAD_PROCESS_SHARED), 0);
  CHECK_EQUAL(pthread_mutex_init(&shared->mutex, &m), 0);
  CHECK_EQUAL(pthread_cond_init(&shared->condition, &c), 0);
  CHECK_EQUAL(pthread_rwlock_init(&shared->lock, &l), 0);
  CHECK_EQUAL(sem_init(&shared->held, 1, 0), 0);
  CHECK_EQUAL(sem_init(&shared->done, 1, 0), 0);
  const pid_t child = start_process(holds, 0);
  CHECK_EQUAL(sem_wait(&shared->held), 0);
  struct timespec t = in_ns(CLOCK_REALTIME, 10 * MS);
  CHECK_EQUAL(pthread_mutex_timedlock(&shared->mutex, &t), ETIMEDOUT);
  CHECK_EQUAL(pthread_rwlock_timedrdlock(&shared->lock, &t), ETIMEDOUT);
  CHECK_EQUAL(pthread_rwlock_timedwrlock(&shared->lock, &t), ETIMEDOUT);
  CHECK_EQUAL(sem_post(&shared->done), 0);
  CHECK_EQUAL(pthread_mutex_lock(&shared->mutex), 0);
  for (int i = 0; i < 10; ++i) {
    while (shared->turn % 2 == 1) pthread_cond_wait(&shared->condition, &shared->mutex);
    ++shared->turn;
    CHECK_EQUAL(pthread_cond_signal(&shared->condition), 0);
  }
  while (shared->turn < 20) pthread_cond_wait(&shared->condition, &shared->mutex);
  t = in_ns(CLOCK_MONOTONIC, 10 * MS);
  CHECK_EQUAL(pthread_cond_timedwait(&shared->condition, &shared->mutex, &t), ETIMEDOUT);
  CHECK_EQUAL(pthread_mutex_unlock(&shared->mutex), 0);
  CHECK_EQUAL(pthread_rwlock_rdlock(&shared->lock), 0);
  CHECK_EQUAL(status_of(child), 0);
  return succeed();
}
