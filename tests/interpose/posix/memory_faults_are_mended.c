// SPDX-License-Identifier: Apache-2.0
// If a SIGSEGV handler makes the page writable, the write continues; the handler gets the address
// and the reason; beyond the end of a file the signal is SIGBUS.
#define _GNU_SOURCE
#include <setjmp.h>
#include <sys/mman.h>

#include "../small.h"

static char* page;
static volatile sig_atomic_t faults, wrong;
static sigjmp_buf back;

static void mend(int signo, siginfo_t* info, void* context) {
  (void)context;
  ++faults;
  if (signo != SIGSEGV || info->si_code != SEGV_ACCERR) wrong = 1;
  char* const at = (char*)((uintptr_t)info->si_addr & ~(uintptr_t)4095);
  if (mprotect(at, 4096, PROT_READ | PROT_WRITE) != 0) _exit(9);
}

static void leave(int signo, siginfo_t* info, void* context) {
  (void)context;
  if (info->si_addr != page + 4096) wrong = 2;
  siglongjmp(back, signo);
}

int main(void) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_sigaction = mend;
  a.sa_flags = SA_SIGINFO;
  CHECK_EQUAL(sigaction(SIGSEGV, &a, NULL), 0);
  page = mmap(NULL, 8 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 8; ++i) *(volatile char*)(page + i * 4096 + 7) = (char)i;
  }
  CHECK_EQUAL(faults, 8);
  CHECK_EQUAL(wrong, 0);
  CHECK_EQUAL(page[5 * 4096 + 7], 5);
  CHECK_EQUAL(munmap(page, 8 * 4096), 0);
  a.sa_sigaction = leave;
  CHECK_EQUAL(sigaction(SIGBUS, &a, NULL), 0);
  FILE* const t = tmpfile();
  CHECK_EQUAL(ftruncate(fileno(t), 4096), 0);
  page = mmap(NULL, 2 * 4096, PROT_READ, MAP_SHARED, fileno(t), 0);
  CHECK(page != MAP_FAILED);
  const int got = sigsetjmp(back, 1);
  if (got == 0) CHECK_EQUAL(*(volatile char*)(page + 4096), 1);
  CHECK_EQUAL(got, SIGBUS);
  CHECK_EQUAL(wrong, 0);
  return succeed();
}
