// SPDX-License-Identifier: Apache-2.0
// A thread with a stack of PTHREAD_STACK_MIN bytes can lock, wait, print into memory, fork and wait
// for its child; less than that is refused.
#include <limits.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int semaphores;

static void* work(void* unused) {
  char text[40];
  CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
  const struct timespec t = in_ns(CLOCK_REALTIME, MS);
  CHECK_EQUAL(pthread_cond_timedwait(&condition, &mutex, &t), ETIMEDOUT);
  CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
  CHECK_EQUAL(snprintf(text, sizeof text, "%d %s", 17, "text"), 7);
  struct sembuf up = {0, 1, 0};
  CHECK_EQUAL(semop(semaphores, &up, 1), 0);
  const pid_t child = fork();
  if (child == 0) _exit(3);
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WEXITSTATUS(status), 3);
  sleep_ms(1);
  return unused;
}

int main(void) {
  pthread_attr_t attributes;
  const size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
  CHECK(least >= 16384);
  semaphores = semget(IPC_PRIVATE, 1, 0600);
  CHECK(semaphores >= 0);
  CHECK_EQUAL(pthread_attr_init(&attributes), 0);
  CHECK_EQUAL(pthread_attr_setstacksize(&attributes, 16383), EINVAL);
  CHECK_EQUAL(pthread_attr_setstacksize(&attributes, least), 0);
  for (int i = 0; i < 3; ++i) {
    pthread_t t;
    CHECK_EQUAL(pthread_create(&t, &attributes, work, NULL), 0);
    join(t);
  }
  CHECK_EQUAL(semctl(semaphores, 0, IPC_RMID), 0);
  return succeed();
}
