// SPDX-License-Identifier: Apache-2.0
// A handler of SIGSEGV gets the address and jumps out; the program continues.
#define _GNU_SOURCE
#include <setjmp.h>
#include <sys/mman.h>

#include "../small.h"

static sigjmp_buf back;
static void* where;
static void note(int signo, siginfo_t* info, void* context) {
  (void)context;
  where = info->si_addr;
  siglongjmp(back, signo);
}

int main(void) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_sigaction = note;
  a.sa_flags = SA_SIGINFO;
  CHECK_EQUAL(sigaction(SIGSEGV, &a, NULL), 0);
  char* page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 2; ++i) {
    if (sigsetjmp(back, 1) == 0) {
      page[10 + i] = 1;
      CHECK(0);
    }
    CHECK(where == page + 10 + i);
  }
  return succeed();
}
