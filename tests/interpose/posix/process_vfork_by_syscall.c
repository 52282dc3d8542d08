// SPDX-License-Identifier: Apache-2.0
// vfork as a system call in the program's own code.
#define _GNU_SOURCE
#include <sys/syscall.h>

#include "../child.h"

static volatile int global;

int main(void) {
  volatile int local = 0;
  for (int i = 1; i <= 3; ++i) {
    long p;
    __asm__ volatile("syscall" : "=a"(p) : "0"(SYS_vfork) : "rcx", "r11", "memory");
    CHECK(p >= 0);
    if (p == 0) {
      local = i;
      global = 2 * i;
      _exit(i);
    }
    CHECK_EQUAL(local, i);
    CHECK_EQUAL(global, 2 * i);
    CHECK_EQUAL(WEXITSTATUS(status_of((pid_t)p)), i);
  }
  return succeed();
}
