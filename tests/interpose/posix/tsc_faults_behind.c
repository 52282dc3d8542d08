// SPDX-License-Identifier: Apache-2.0
// The instruction after a read faults: the handler sees that instruction's address, repairs the
// memory that it read, and the instruction runs again.
#define _GNU_SOURCE
#include <ucontext.h>

#include "tsc.h"

// clang-format off
__asm__(
    ".text\n .p2align 4\n .globl read_and_load, site, load\n"
    "read_and_load:\n"
    "site:\n  rdtsc\n"
    "load:\n  mov 8(%rdi), %rax\n ret\n");
// clang-format on
extern uint64_t read_and_load(const uint64_t*);
extern void site(void), load(void);

static const uint64_t repaired[2] = {0, 77};
static int faults;

static void repair(int signo, siginfo_t* info, void* context) {
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  CHECK_EQUAL(signo, SIGSEGV);
  CHECK_EQUAL((long)info->si_addr, 8);
  CHECK_EQUAL(registers[REG_RIP], (long)(uintptr_t)load);
  registers[REG_RDI] = (greg_t)(uintptr_t)repaired;
  ++faults;
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = repair;
  action.sa_flags = SA_SIGINFO;
  CHECK_EQUAL(sigaction(SIGSEGV, &action, NULL), 0);
  const uint64_t sound[2] = {0, 5};
  for (int i = 0; i < READS; ++i) {
    CHECK_EQUAL(read_and_load(sound), 5);
    CHECK_EQUAL(read_and_load(NULL), 77);
  }
  CHECK_EQUAL(faults, READS);
  CHECK_EQUAL(is_changed((const void*)site), is_virtual());
  return succeed();
}
