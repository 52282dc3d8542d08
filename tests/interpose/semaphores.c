// SPDX-License-Identifier: Apache-2.0
// Semaphores: between threads, between processes, named, with deadlines on both clocks (trap 10),
// interrupted by a handler.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static sem_t ping, pong;
static void* play(void* x) {
  for (int i = 0; i < 500; ++i) {
    CHECK_EQUAL(sem_wait(&ping), 0);
    CHECK_EQUAL(sem_post(&pong), 0);
  }
  return x;
}

static volatile int handled;
static void handle(int s) {
  (void)s;
  ++handled;
}

int main(void) {
  sem_init(&ping, 0, 0);
  sem_init(&pong, 0, 0);
  pthread_t t;
  pthread_create(&t, NULL, play, NULL);
  for (int i = 0; i < 500; ++i) {
    sem_post(&ping);
    sem_wait(&pong);
  }
  pthread_join(t, NULL);
  int v;
  CHECK_EQUAL(sem_getvalue(&ping, &v), 0);
  CHECK_EQUAL(v, 0);
  CHECK(sem_trywait(&ping) == -1 && errno == EAGAIN);
  printf("threads\n");

  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_nsec = 0;
  CHECK(sem_timedwait(&ping, &at) == -1 && errno == ETIMEDOUT);
  at.tv_nsec = -1;
  CHECK(sem_timedwait(&ping, &at) == -1 && errno == EINVAL);
  clock_gettime(CLOCK_MONOTONIC, &at);
  CHECK(sem_clockwait(&ping, CLOCK_MONOTONIC, &at) == -1 && errno == ETIMEDOUT);
  sem_post(&ping);
  at.tv_sec += 10;
  CHECK_EQUAL(sem_clockwait(&ping, CLOCK_MONOTONIC, &at), 0);
  printf("deadlines\n");

  struct sigaction action = {0};
  action.sa_handler = handle;
  sigaction(SIGALRM, &action, NULL);
  alarm(1);
  CHECK(sem_wait(&ping) == -1 && errno == EINTR);
  CHECK_EQUAL(handled, 1);
  printf("interrupted\n");

  sem_t* shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  sem_init(&shared[0], 1, 0);
  sem_init(&shared[1], 1, 0);
  sem_unlink("/crane-test-semaphore");
  sem_t* named = sem_open("/crane-test-semaphore", O_CREAT | O_EXCL, 0600, 0);
  CHECK(named != SEM_FAILED);
  sem_unlink("/crane-test-semaphore");
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 100; ++i) {
      sem_wait(&shared[0]);
      sem_post(&shared[1]);
    }
    sem_post(named);
    _exit(0);
  }
  for (int i = 0; i < 100; ++i) {
    sem_post(&shared[0]);
    sem_wait(&shared[1]);
  }
  CHECK_EQUAL(sem_wait(named), 0);
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  printf("processes\n");
  return succeed();
}
