// SPDX-License-Identifier: Apache-2.0
// Signals: masks, pending, nesting, flags, EINTR and SA_RESTART, waiting for signals, threads as
// targets, handlers that synchronise, jump away or end the thread (trap 34, rule 14).
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

static volatile int calls, depth, deepest;
static volatile int last;
static sem_t semaphore;

static void handle(int s) {
  ++calls;
  last = s;
}
static void nest(int s) {
  if (++depth > deepest) deepest = depth;
  if (calls++ < 3) raise(s);
  --depth;
}
static void post(int s) {
  (void)s;
  sem_post(&semaphore);
}

static void set(int s, void (*h)(int), int flags) {
  struct sigaction a = {0};
  a.sa_handler = h;
  a.sa_flags = flags;
  CHECK_EQUAL(sigaction(s, &a, NULL), 0);
  calls = depth = deepest = last = 0;
}

static void test_masks(void) {
  sigset_t one, old, pending;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  set(SIGUSR1, handle, 0);
  raise(SIGUSR1);
  CHECK_EQUAL(calls, 1);
  sigprocmask(SIG_BLOCK, &one, &old);
  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGUSR1);
  CHECK_EQUAL(calls, 1);
  sigpending(&pending);
  CHECK(sigismember(&pending, SIGUSR1));
  sigprocmask(SIG_SETMASK, &old, NULL);
  CHECK_EQUAL(calls, 2);
  sigpending(&pending);
  CHECK(!sigismember(&pending, SIGUSR1));
  CHECK(sigaction(SIGKILL, &(struct sigaction){0}, NULL) == -1 && errno == EINVAL);
  CHECK(kill(getpid(), 99) == -1 && errno == EINVAL);
  CHECK(sigprocmask(77, &one, NULL) == -1 && errno == EINVAL);
  printf("masks\n");

  set(SIGUSR1, nest, 0);
  raise(SIGUSR1);
  CHECK_EQUAL(calls, 4);
  CHECK_EQUAL(deepest, 1);
  set(SIGUSR1, nest, SA_NODEFER);
  raise(SIGUSR1);
  CHECK_EQUAL(deepest, 4);
  set(SIGUSR1, handle, SA_RESETHAND);
  raise(SIGUSR1);
  struct sigaction a;
  sigaction(SIGUSR1, NULL, &a);
  CHECK(a.sa_handler == SIG_DFL);
  CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
  raise(SIGUSR1);
  CHECK(signal(SIGUSR1, handle) == SIG_IGN);
  printf("flags\n");
}

static void* interrupt(void* x) {
  const struct timespec t = {0, 30000000};
  nanosleep(&t, NULL);
  pthread_kill(*(pthread_t*)x, SIGUSR1);
  nanosleep(&t, NULL);
  sem_post(&semaphore);
  return x;
}

static void test_interruption(void) {
  pthread_t me = pthread_self(), t;
  sem_init(&semaphore, 0, 0);
  set(SIGUSR1, handle, 0);
  pthread_create(&t, NULL, interrupt, &me);
  CHECK(sem_wait(&semaphore) == -1 && errno == EINTR);
  CHECK_EQUAL(calls, 1);
  pthread_join(t, NULL);
  CHECK_EQUAL(sem_trywait(&semaphore), 0);
  set(SIGUSR1, handle, SA_RESTART);
  pthread_create(&t, NULL, interrupt, &me);
  CHECK_EQUAL(sem_wait(&semaphore), 0);
  CHECK_EQUAL(calls, 1);
  pthread_join(t, NULL);
  pthread_create(&t, NULL, interrupt, &me);
  struct timespec left, nap = {1000, 0};
  CHECK(nanosleep(&nap, &left) == -1 && errno == EINTR);
  CHECK(left.tv_sec >= 990 && left.tv_sec < 1000);
  pthread_join(t, NULL);
  printf("interruption\n");
}

static void test_waiting(void) {
  sigset_t both, old;
  sigemptyset(&both);
  sigaddset(&both, SIGUSR1);
  sigaddset(&both, SIGUSR2);
  set(SIGUSR1, handle, 0);
  set(SIGUSR2, handle, 0);
  pthread_sigmask(SIG_BLOCK, &both, &old);
  raise(SIGUSR2);
  int s;
  CHECK_EQUAL(sigwait(&both, &s), 0);
  CHECK_EQUAL(s, SIGUSR2);
  const struct timespec nap = {0, 5000000};
  CHECK(sigtimedwait(&both, NULL, &nap) == -1 && errno == EAGAIN);
  siginfo_t info;
  kill(getpid(), SIGUSR1);
  CHECK_EQUAL(sigwaitinfo(&both, &info), SIGUSR1);
  CHECK_EQUAL(info.si_signo, SIGUSR1);
  CHECK_EQUAL(calls, 0);
  raise(SIGUSR1);
  CHECK(sigsuspend(&old) == -1 && errno == EINTR);
  CHECK_EQUAL(calls, 1);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  CHECK_EQUAL(calls, 1);
  printf("waiting\n");
}

static void test_alarm(void) {
  set(SIGALRM, handle, 0);
  CHECK_EQUAL(alarm(100), 0);
  CHECK_EQUAL(alarm(1), 100);
  pause();
  CHECK_EQUAL(calls, 1);
  struct itimerval v = {{0, 10000}, {0, 20000}}, old;
  CHECK_EQUAL(setitimer(ITIMER_REAL, &v, NULL), 0);
  while (calls < 4) pause();
  memset(&v, 0, sizeof v);
  CHECK_EQUAL(setitimer(ITIMER_REAL, &v, &old), 0);
  CHECK_EQUAL(old.it_interval.tv_usec, 10000);
  printf("alarm\n");
}

static sigjmp_buf place;
static void jump(int s) {
  (void)s;
  siglongjmp(place, 1);
}
static void test_fault(void) {
  volatile int faults = 0;
  set(SIGSEGV, jump, 0);
  for (volatile int i = 0; i < 3; ++i) {
    if (sigsetjmp(place, 1) == 0) {
      *(volatile int*)16 = 1;
    } else {
      ++faults;
    }
  }
  CHECK_EQUAL(faults, 3);
  signal(SIGSEGV, SIG_DFL);
  volatile int jumps = 0;
  set(SIGUSR1, jump, 0);
  for (volatile int i = 0; i < 3; ++i) {
    if (sigsetjmp(place, 1) == 0) {
      raise(SIGUSR1);
      CHECK(0);
    } else {
      ++jumps;
    }
  }
  CHECK_EQUAL(jumps, 3);
  printf("jumps\n");
}

static void leave(int s) {
  (void)s;
  pthread_exit((void*)9);
}
static void* wait_forever(void* x) {
  sem_post(&semaphore);
  for (;;) pause();
  return x;
}
static void test_threads(void) {
  pthread_t t;
  void* result;
  set(SIGUSR2, leave, 0);
  pthread_create(&t, NULL, wait_forever, NULL);
  sem_wait(&semaphore);
  CHECK_EQUAL(pthread_kill(t, 0), 0);
  CHECK_EQUAL(pthread_kill(t, SIGUSR2), 0);
  CHECK_EQUAL(pthread_join(t, &result), 0);
  CHECK_EQUAL((long)result, 9);
  // A signal for the process goes to the thread that does not block it.
  set(SIGUSR2, post, 0);
  pthread_create(&t, NULL, wait_forever, NULL);
  sem_wait(&semaphore);
  sigset_t one, old;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &one, &old);
  kill(getpid(), SIGUSR2);
  CHECK_EQUAL(sem_wait(&semaphore), 0);
  pthread_cancel(t);
  CHECK_EQUAL(pthread_join(t, &result), 0);
  CHECK(result == PTHREAD_CANCELED);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  printf("threads\n");
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  test_masks();
  test_interruption();
  test_waiting();
  test_alarm();
  test_fault();
  test_threads();
  return succeed();
}
