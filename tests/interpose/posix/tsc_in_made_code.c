// SPDX-License-Identifier: Apache-2.0
// Code that the program generates is not changed, however often it reads the counter, because the
// program may rewrite it at any time.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "tsc.h"

typedef uint64_t (*Function)(void);

// rdtsc; shl $32, %rdx; or %rdx, %rax; ret
static const unsigned char kRead[] = {0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0xc3};
static const unsigned char kFive[] = {0xb8, 5, 0, 0, 0, 0xc3};  // mov $5, %eax; ret

int main(void) {
  unsigned char* code =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(code != MAP_FAILED);
  const Function function = (Function)(uintptr_t)code;
  memcpy(code, kRead, sizeof kRead);
  uint64_t last = 0;
  for (int i = 0; i < READS; ++i) {
    const uint64_t now = function();
    CHECK(now > last);
    last = now;
  }
  CHECK(memcmp(code, kRead, sizeof kRead) == 0);
  memcpy(code, kFive, sizeof kFive);
  CHECK_EQUAL(function(), 5);
  return succeed();
}
