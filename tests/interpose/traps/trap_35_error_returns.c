// SPDX-License-Identifier: Apache-2.0
// Calls that fail return their error, once: there is no endless retry.
#define _GNU_SOURCE
#include <limits.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../small.h"

static pthread_mutex_t* robust;

static void* die_holding(void* x) {
  pthread_mutex_lock(robust);
  return x;
}

int main(void) {
  const struct timespec bad = {0, 2000000000};
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  pthread_mutexattr_t a;
  sem_t s;
  pthread_mutex_lock(&m);
  CHECK_EQUAL(pthread_cond_timedwait(&c, &m, &bad), EINVAL);
  CHECK_EQUAL(pthread_cond_clockwait(&c, &m, CLOCK_PROCESS_CPUTIME_ID, &bad), EINVAL);
  sem_init(&s, 0, 0);
  CHECK_EQUAL(sem_timedwait(&s, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sem_trywait(&s), -1);
  CHECK_EQUAL(errno, EAGAIN);
  sem_init(&s, 0, SEM_VALUE_MAX);
  CHECK_EQUAL(sem_post(&s), -1);
  CHECK_EQUAL(errno, EOVERFLOW);

  pthread_mutexattr_init(&a);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
  robust = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutex_init(robust, &a);
  join(start(die_holding, NULL));
  CHECK_EQUAL(pthread_mutex_lock(robust), EOWNERDEAD);
  CHECK_EQUAL(pthread_mutex_unlock(robust), 0);
  CHECK_EQUAL(pthread_mutex_lock(robust), ENOTRECOVERABLE);
  return succeed();
}
