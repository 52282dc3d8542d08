// SPDX-License-Identifier: Apache-2.0
// Code with 1 KB of stack makes system calls directly, as Go's does: they block, signals are
// handled meanwhile (on the alternate stack, with calls in the handler), and the memory below the
// stack is unchanged.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <ucontext.h>

#include "../small.h"

enum { kBelow = 64 * 1024, kStack = 1024 };
static unsigned char memory[kBelow + kStack] __attribute__((aligned(16)));
static ucontext_t back, there;
static int ends[2];
static volatile int handled;

static long by_number(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}

static void note(int signo) {
  char byte = 'x';
  (void)signo;
  handled = handled + 1;
  by_number(SYS_write, ends[1], (long)&byte, 1);
}

static void* sends(void* to) {
  sleep_ms(20);
  pthread_kill(*(pthread_t*)to, SIGUSR1);
  return NULL;
}

static char got;
static long result;
static void on_small_stack(void) {
  result = by_number(SYS_read, ends[0], (long)&got, 1);
  by_number(SYS_getpid, 0, 0, 0);
}

int main(void) {
  const stack_t s = {.ss_sp = malloc(64 * 1024), .ss_size = 64 * 1024};
  CHECK_EQUAL(sigaltstack(&s, NULL), 0);
  handle(SIGUSR1, note, SA_ONSTACK | SA_RESTART);
  CHECK_EQUAL(pipe(ends), 0);
  memset(memory, 0x5a, kBelow);
  pthread_t me = pthread_self();
  const pthread_t other = start(sends, &me);
  CHECK_EQUAL(getcontext(&there), 0);
  there.uc_stack.ss_sp = memory + kBelow;
  there.uc_stack.ss_size = kStack;
  there.uc_link = &back;
  makecontext(&there, on_small_stack, 0);
  CHECK_EQUAL(swapcontext(&back, &there), 0);
  join(other);
  CHECK_EQUAL(result, 1);
  CHECK_EQUAL(got, 'x');
  CHECK_EQUAL(handled, 1);
  for (int i = 0; i < kBelow; ++i) CHECK_EQUAL(memory[i], 0x5a);
  return succeed();
}
