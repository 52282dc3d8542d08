// SPDX-License-Identifier: Apache-2.0
// fork in a process with threads: the child has one thread, its own copies of locks and memory, and
// can start threads; the parent's threads continue.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;
static int value = 1;

static void* work(void* x) {
  while (!stop) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    sched_yield();
  }
  return x;
}
static void* set(void* x) {
  value = 2;
  return x;
}

int main(void) {
  const pthread_t t = start(work, NULL);
  pthread_mutex_lock(&mutex);
  const pid_t child = fork();
  pthread_mutex_unlock(&mutex);  // the parent's and the child's copy
  if (child == 0) {
    join(start(set, NULL));
    _exit(value == 2 ? 5 : 1);
  }
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQUAL(WEXITSTATUS(status), 5);
  CHECK_EQUAL(value, 1);
  stop = 1;
  join(t);
  return succeed();
}
