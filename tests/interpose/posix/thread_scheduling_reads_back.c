// SPDX-License-Identifier: Apache-2.0
// Policies and priorities of threads and processes: they read back, threads inherit them or have
// their own, and invalid values are refused.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "../small.h"

static int policy_of(pthread_t thread, int* priority) {
  int policy = -1;
  struct sched_param given;
  CHECK_EQUAL(pthread_getschedparam(thread, &policy, &given), 0);
  *priority = given.sched_priority;
  return policy;
}

static void* look(void* wanted) {
  int priority = -1;
  const int policy = policy_of(pthread_self(), &priority);
  return (void*)(long)(policy * 1000 + priority != *(int*)wanted);
}

// A thread's own view of itself.
static void check_thread(const pthread_attr_t* attributes, int wanted) {
  pthread_t thread;
  void* differs = NULL;
  CHECK_EQUAL(pthread_create(&thread, attributes, look, &wanted), 0);
  CHECK_EQUAL(pthread_join(thread, &differs), 0);
  CHECK_EQUAL(differs == NULL, 1);
}

static void check_unprivileged(void) {
  const pid_t child = fork();
  if (child == 0) {
    const struct sched_param five = {.sched_priority = 5};
    if (setresuid(1001, 1001, 1001) != 0) _exit(2);
    if (sched_setscheduler(0, SCHED_FIFO, &five) != -1 || errno != EPERM) _exit(3);
    _exit(pthread_setschedparam(pthread_self(), SCHED_RR, &five) == EPERM ? 0 : 4);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
}

int main(void) {
  if (geteuid() != 0) return succeed();
  const struct sched_param none = {0};
  struct sched_param five = {.sched_priority = 5}, got;
  int priority = -1;
  // Whatever policy it was started with.
  CHECK_EQUAL(sched_setscheduler(0, SCHED_OTHER, &none), 0);
  check_unprivileged();
  CHECK_EQUAL(policy_of(pthread_self(), &priority), SCHED_OTHER);
  CHECK_EQUAL(priority, 0);
  CHECK_EQUAL(pthread_setschedparam(pthread_self(), SCHED_FIFO, &five), 0);
  CHECK_EQUAL(policy_of(pthread_self(), &priority), SCHED_FIFO);
  CHECK_EQUAL(priority, 5);
  CHECK_EQUAL(pthread_setschedprio(pthread_self(), 7), 0);
  CHECK_EQUAL(policy_of(pthread_self(), &priority), SCHED_FIFO);
  CHECK_EQUAL(priority, 7);
  CHECK_EQUAL(pthread_setschedprio(pthread_self(), 1000), EINVAL);
  CHECK_EQUAL(pthread_setschedparam(pthread_self(), 77, &five), EINVAL);
  CHECK_EQUAL(pthread_setschedparam(pthread_self(), SCHED_OTHER, &five), EINVAL);
  CHECK_EQUAL(sched_getscheduler(0), SCHED_FIFO);
  CHECK_EQUAL(sched_getparam(getpid(), &got), 0);
  CHECK_EQUAL(got.sched_priority, 7);
  check_thread(NULL, SCHED_FIFO * 1000 + 7);  // inherited from its creator
  pthread_attr_t attributes;
  CHECK_EQUAL(pthread_attr_init(&attributes), 0);
  CHECK_EQUAL(pthread_attr_setschedpolicy(&attributes, SCHED_RR), 0);
  CHECK_EQUAL(pthread_attr_setschedparam(&attributes, &five), 0);
  check_thread(&attributes, SCHED_FIFO * 1000 + 7);  // not explicit
  CHECK_EQUAL(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED), 0);
  check_thread(&attributes, SCHED_RR * 1000 + 5);
  CHECK_EQUAL(sched_setscheduler(0, SCHED_RR, &five), 0);
  struct timespec slice;
  CHECK_EQUAL(sched_rr_get_interval(0, &slice), 0);
  CHECK_EQUAL(slice.tv_nsec > 0, 1);
  five.sched_priority = 9;
  CHECK_EQUAL(sched_setparam(0, &five), 0);
  CHECK_EQUAL(sched_getparam(0, &got), 0);
  CHECK_EQUAL(got.sched_priority, 9);
  CHECK_EQUAL(sched_setscheduler(0, SCHED_OTHER, &none), 0);
  CHECK_EQUAL(sched_getscheduler(0), SCHED_OTHER);
  CHECK_EQUAL(sched_getscheduler(0x3ffffffe), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(sched_getscheduler(-1), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
