// SPDX-License-Identifier: Apache-2.0
// A process-shared mutex, condition and semaphore in a file that parent and child map a second
// time, at different addresses: they are the same objects.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../small.h"

struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  sem_t semaphore;
  int stage;
};

static int fd;

static struct Shared* map(void) {
  struct Shared* p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED);
  return p;
}

int main(void) {
  char name[] = "/tmp/crane_trap_32_XXXXXX";
  pthread_mutexattr_t ma;
  pthread_condattr_t ca;
  fd = mkstemp(name);
  unlink(name);
  CHECK_EQUAL(ftruncate(fd, 4096), 0);
  struct Shared* p = map();
  pthread_mutexattr_init(&ma);
  pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
  pthread_condattr_init(&ca);
  pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&p->mutex, &ma);
  pthread_cond_init(&p->condition, &ca);
  sem_init(&p->semaphore, 1, 0);
  const pid_t child = fork();
  if (child == 0) {
    struct Shared* q = map();  // the inherited mapping is still there
    CHECK(q != p);
    CHECK_EQUAL(sem_wait(&q->semaphore), 0);
    pthread_mutex_lock(&q->mutex);
    q->stage = 1;
    pthread_cond_signal(&q->condition);
    while (q->stage != 2) pthread_cond_wait(&q->condition, &q->mutex);
    pthread_mutex_unlock(&q->mutex);
    _exit(0);
  }
  pthread_mutex_lock(&p->mutex);
  sleep_ms(5);
  CHECK_EQUAL(sem_post(&p->semaphore), 0);
  while (p->stage != 1) pthread_cond_wait(&p->condition, &p->mutex);
  sleep_ms(5);
  p->stage = 2;
  pthread_cond_signal(&p->condition);
  pthread_mutex_unlock(&p->mutex);
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  return succeed();
}
