// SPDX-License-Identifier: Apache-2.0
// A program handles the overflow of a thread's stack on an alternate stack, jumps out, and does so
// again; its handler makes calls, and always sees its own stack and mask.
#define _GNU_SOURCE
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../small.h"

static __thread char* stack;
static __thread sigjmp_buf where;
static const size_t kSize = 64 * 1024;

static long number_of_this_process(void) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_getpid) : "rcx", "r11", "memory");
  return result;
}

static void leave(int signo, siginfo_t* info, void* given) {
  const ucontext_t* context = given;
  char here;
  stack_t now;
  sigset_t mask;
  CHECK_EQUAL(signo, SIGSEGV);
  CHECK(info->si_addr != NULL);
  CHECK(&here >= stack && &here < stack + kSize);
  CHECK(context->uc_stack.ss_sp == stack);
  CHECK_EQUAL(context->uc_stack.ss_size, kSize);
  CHECK_EQUAL(sigaltstack(NULL, &now), 0);
  CHECK(now.ss_sp == stack && (now.ss_flags & SS_ONSTACK) != 0);
  CHECK_EQUAL(sigaltstack(&now, NULL), -1);
  CHECK_EQUAL(errno, EPERM);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
  CHECK_EQUAL(sigismember(&mask, SIGSEGV), 1);
  CHECK_EQUAL(number_of_this_process(), getpid());
  siglongjmp(where, 5);
}

static volatile int never_ends = 1;
__attribute__((noinline)) static int overflow(volatile char* above) {
  volatile char here[4096];
  if (!never_ends) return 0;
  here[0] = above == NULL ? 0 : *above;
  return overflow(here) + here[0];
}

static void* overflows(void* x) {
  stack_t before;
  CHECK_EQUAL(sigaltstack(NULL, &before), 0);
  CHECK_EQUAL(before.ss_flags, stack == NULL ? SS_DISABLE : 0);
  CHECK(before.ss_sp == stack);
  stack = malloc(kSize);
  const stack_t s = {.ss_sp = stack, .ss_size = kSize};
  CHECK_EQUAL(sigaltstack(&s, NULL), 0);
  for (volatile int i = 0; i < 20; ++i) {
    const int value = sigsetjmp(where, 1);
    if (value == 0) overflow(NULL);
    CHECK_EQUAL(value, 5);
  }
  return x;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  CHECK_EQUAL(sigaction(SIGSEGV, &action, NULL), 0);
  overflows(NULL);
  join(start(overflows, NULL));
  const pid_t child = fork();
  if (child == 0) {
    overflows(NULL);  // the alternate stack was inherited
    _exit(7);
  }
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  return succeed();
}
