// SPDX-License-Identifier: Apache-2.0
// Two read sequences that a compiler has merged: one enters the second half of the other, by a
// jump, through a table, or from afar. The program is at the address it was linked for.
//
// build: -no-pie
#include "tsc.h"

// clang-format off
__asm__(
    ".text\n .p2align 4\n .globl read_counter, site, behind, jumps_there, far_away\n"
    "read_counter:\n"
    "site:\n  rdtsc\n"
    "behind:\n  shl $32, %rdx\n or %rdx, %rax\n ret\n"
    "jumps_there:\n  mov $5, %eax\n mov $7, %edx\n jmp behind\n"
    ".section .text.unlikely, \"ax\", @progbits\n .p2align 4\n"
    "far_away:\n  mov $6, %eax\n mov $7, %edx\n test %eax, %eax\n jne behind\n hlt\n"
    ".text\n .globl through_table\n"
    "through_table:\n  mov %rdi, %rax\n xor %edx, %edx\n jmp *table(%rip)\n"
    ".data\n .p2align 3\n"
    "table: .quad behind\n"
    ".text\n");
// clang-format on
extern uint64_t read_counter(void), jumps_there(void), far_away(void), through_table(uint64_t);
extern void site(void);

int main(void) {
  uint64_t last = 0;
  for (int i = 0; i < READS; ++i) {
    const uint64_t now = read_counter();
    CHECK(now > last);
    last = now;
    CHECK_EQUAL(jumps_there(), 7ull << 32 | 5);
    CHECK_EQUAL(far_away(), 7ull << 32 | 6);
    CHECK_EQUAL(through_table((uint64_t)i), (uint64_t)i);
  }
  CHECK_EQUAL(is_changed((const void*)site), is_virtual());
  return succeed();
}
