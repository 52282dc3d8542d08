// SPDX-License-Identifier: Apache-2.0
// solo: --unhooked
// System calls in inline assembly: a mutex of futexes, io_uring with its portable path, signals and
// a clock. They become operations, or are refused, and each is counted by name and place.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static long call(long n, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

// 0 free, 1 locked, 2 locked and a thread may wait.
static atomic_int word;
static void lock(void) {
  int seen = 0;
  if (atomic_compare_exchange_strong(&word, &seen, 1)) return;
  while (atomic_exchange(&word, 2) != 0) {
    call(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
  }
}
static void unlock(void) {
  if (atomic_exchange(&word, 0) == 2) {
    call(SYS_futex, (long)&word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
  }
}

enum { kThreads = 4, kRounds = 50 };
static int counter;
static void* count(void* x) {
  for (int i = 0; i < kRounds; ++i) {
    lock();
    const int seen = counter;
    sched_yield();  // to create contention for the lock
    counter = seen + 1;
    unlock();
  }
  return x;
}

static volatile sig_atomic_t caught = 0;
static void on_signal(int s) { caught = s; }

int main(int argc, char** argv) {
  if (argc > 1) {
    CHECK_EQUAL(call(SYS_fchdir, 9999, 0, 0, 0, 0, 0), -EBADF);
    return 7;
  }
  pthread_t t[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&t[i], NULL, count, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(t[i], NULL);
  CHECK_EQUAL(counter, kThreads * kRounds);
  printf("locks\n");

  char parameters[120] = {0};
  const long ring = call(SYS_io_uring_setup, 4, (long)parameters, 0, 0, 0, 0);
  if (ring >= 0) close((int)ring);
  char bytes[4];
  fflush(stdout);
  const int fd = open("/proc/self/exe", O_RDONLY);
  CHECK_EQUAL(pread(fd, bytes, sizeof bytes, 0), sizeof bytes);
  CHECK(memcmp(bytes, "\177ELF", 4) == 0);
  printf("reading\n");

  struct timespec before, after;
  const struct timespec nap = {0, 20000000};
  CHECK_EQUAL(clock_gettime(CLOCK_MONOTONIC, &before), 0);
  CHECK_EQUAL(call(SYS_nanosleep, (long)&nap, 0, 0, 0, 0, 0), 0);
  CHECK_EQUAL(call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&after, 0, 0, 0, 0), 0);
  const long long slept =
      (after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec;
  CHECK(slept >= 20000000);
  printf("clock\n");

  signal(SIGUSR1, on_signal);
  uint64_t mask = 1ull << (SIGUSR1 - 1), old = 0;
  CHECK_EQUAL(call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, (long)&old, 8, 0, 0), 0);
  CHECK_EQUAL(call(SYS_kill, getpid(), SIGUSR1, 0, 0, 0, 0), 0);
  CHECK_EQUAL(caught, 0);
  CHECK_EQUAL(call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, 8, 0, 0), 0);
  CHECK_EQUAL(caught, SIGUSR1);
  printf("signals\n");
  fflush(stdout);

  // The kernel drops the trap at fork and exec.
  const pid_t child = fork();
  if (child == 0) {
    CHECK_EQUAL(call(SYS_dup, 9999, 0, 0, 0, 0, 0), -EBADF);
    execl(argv[0], argv[0], "again", (char*)NULL);
    _exit(1);
  }
  int status = -1;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WEXITSTATUS(status), 7);
  printf("processes\n");

  CHECK_EQUAL(call(SYS_close, 9999, 0, 0, 0, 0, 0), -EBADF);
  CHECK_EQUAL(call(SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());  // bounded: not counted
  return succeed();
}
