// SPDX-License-Identifier: Apache-2.0
// A loop faults at its second instruction, repeatedly, and continues there when the handler has
// made the page writable; another continues after its first instruction, which the handler skips.
// Each of these instructions begins a few bytes after the loop's start, where a tick point of the
// loop has its jump.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <ucontext.h>

#include "../small.h"

enum { kPage = 4096, kPages = 40, kPasses = 100, kSkipped = 3 };

static char* memory;
static volatile int faults, skips;

static void mend(int signo, siginfo_t* info, void* context) {
  (void)signo;
  (void)context;
  char* page = (char*)((unsigned long)info->si_addr & ~(kPage - 1ul));
  ++faults;
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
}

static void skip(int signo, siginfo_t* info, void* context) {
  (void)signo;
  (void)info;
  ++skips;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] += kSkipped;
}

static void handle_faults(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {0};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  CHECK_EQUAL(sigaction(SIGSEGV, &action, NULL), 0);
}

static void fill(long value) {
  char* at = memory;
  __asm__ volatile(
      "1: add $8, %0\n"
      "mov %1, -8(%0)\n"
      "cmp %2, %0\n"
      "jb 1b\n"
      : "+r"(at)
      : "r"(value), "r"(memory + kPages * kPage)
      : "memory", "cc");
}

static long pass_over(void) {
  long passes = 0;
  __asm__ volatile(
      "1: mov %%rcx, (%%rdi)\n"  // 3 bytes
      "add $1, %0\n"
      "cmp %1, %0\n"
      "jb 1b\n"
      : "+r"(passes)
      : "r"((long)kPasses), "D"(memory)
      : "rcx", "memory", "cc");
  return passes;
}

int main(void) {
  memory = mmap(NULL, kPages * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  handle_faults(mend);
  fill(7);
  CHECK_EQUAL(faults, kPages);
  for (long i = 0; i < kPages * kPage / 8; ++i) CHECK_EQUAL(((long*)memory)[i], 7);
  CHECK_EQUAL(mprotect(memory, kPages * kPage, PROT_READ), 0);
  handle_faults(skip);
  CHECK_EQUAL(pass_over(), kPasses);
  CHECK_EQUAL(skips, kPasses);
  return succeed();
}
