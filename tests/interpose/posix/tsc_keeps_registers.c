// SPDX-License-Identifier: Apache-2.0
// However often the counter is read at one place, and whatever instruction follows, a read changes
// only its two registers: no other register, no flag, no vector, and nothing of the 128 bytes below
// the stack pointer.
#include "tsc.h"

enum { kGeneral = 13, kVectors = 16, kRedZone = 16 };

struct Registers {
  uint64_t general[kGeneral];  // rbx rcx rsi rdi rbp r8..r15
  uint64_t rax, rdx, flags;
  uint64_t red_zone[kRedZone];
  unsigned char vectors[kVectors][32];
};
struct Registers before, after;
uint64_t datum = 0x123456789abcdef0;

// clang-format off
__asm__(
    ".macro each_general what\n"
    "  \\what rbx,0\n \\what rcx,1\n \\what rsi,2\n \\what rdi,3\n \\what rbp,4\n \\what r8,5\n"
    "  \\what r9,6\n \\what r10,7\n \\what r11,8\n \\what r12,9\n \\what r13,10\n \\what r14,11\n"
    "  \\what r15,12\n"
    ".endm\n"
    ".macro load_general r, n\n  mov before+8*\\n(%rip), %\\r\n .endm\n"
    ".macro store_general r, n\n mov %\\r, after+8*\\n(%rip)\n .endm\n"
    ".macro each_sixteenth what\n"
    "  \\what 0\n \\what 1\n \\what 2\n \\what 3\n \\what 4\n \\what 5\n \\what 6\n \\what 7\n"
    "  \\what 8\n \\what 9\n \\what 10\n \\what 11\n \\what 12\n \\what 13\n \\what 14\n"
    "  \\what 15\n"
    ".endm\n"
    ".macro load_vector n\n  movdqu before+8*32+32*\\n(%rip), %xmm\\n\n .endm\n"
    ".macro store_vector n\n movdqu %xmm\\n, after+8*32+32*\\n(%rip)\n .endm\n"
    ".macro load_red n\n  mov before+8*16+8*\\n(%rip), %rax\n mov %rax, -8*(\\n+1)(%rsp)\n .endm\n"
    ".macro store_red n\n mov -8*(\\n+1)(%rsp), %rax\n mov %rax, after+8*16+8*\\n(%rip)\n .endm\n"
    ".macro form name, read, instruction:vararg\n"
    ".text\n .p2align 4\n .globl read_\\name, site_\\name\n"
    "read_\\name:\n"
    "  push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "  push before+8*15(%rip)\n popfq\n"
    "  each_general load_general\n each_sixteenth load_vector\n each_sixteenth load_red\n"
    "site_\\name:\n"
    "  \\read\n  \\instruction\n"
    "  mov %rax, after+8*13(%rip)\n mov %rdx, after+8*14(%rip)\n"
    "  each_general store_general\n each_sixteenth store_vector\n each_sixteenth store_red\n"
    "  pushfq\n pop after+8*15(%rip)\n"
    "  pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
    "  cld\n ret\n"
    ".endm\n"
    "form shift, rdtsc, shl $32, %rdx\n"
    "form copy, rdtsc, mov %rax, %r11\n"
    "form mask, rdtsc, and $0x7f, %eax\n"
    "form address, rdtsc, lea datum(%rip), %rcx\n"
    "form load, rdtsc, mov datum(%rip), %r9\n"
    "form compare, rdtsc, cmpl $0x12345678, datum+4(%rip)\n"
    "form constant, rdtsc, movabs $0x1122334455667788, %r10\n"
    "form vector, rdtsc, pxor %xmm3, %xmm3\n"
    "form flags, rdtsc, cmovo %rsi, %rdi\n"
    "form below_stack, rdtsc, movl $0x55, -0x18(%rsp)\n"
    "form short, rdtsc, mov %eax, %ecx\n"
    "form call_behind, rdtsc, jmp .+2\n"
    "form with_processor, rdtscp, nopl 0(%rax)\n");
// clang-format on

enum { kTime = 1, kFlags = 2, kKnown = 4 };  // the parts that change with the counter's value

#define FORMS(F)                 \
  F(shift, kFlags | kKnown)      \
  F(copy, kTime | kKnown)        \
  F(mask, kFlags | kKnown)       \
  F(address, kTime | kKnown)     \
  F(load, kTime | kKnown)        \
  F(compare, kTime | kKnown)     \
  F(constant, kTime | kKnown)    \
  F(vector, kTime | kKnown)      \
  F(flags, kTime | kKnown)       \
  F(below_stack, kTime | kKnown) \
  F(short, kTime)                \
  F(call_behind, kTime)          \
  F(with_processor, kTime)
#define DECLARE(name, what) extern void read_##name(void), site_##name(void);
FORMS(DECLARE)

static const struct Form {
  const char* name;
  void (*read)(void);
  const void* site;
  int what;
} forms[] = {
#define ROW(name, what) {#name, read_##name, (const void*)site_##name, what},
    FORMS(ROW)};

static void fill(uint64_t flags) {
  unsigned char* bytes = (unsigned char*)&before;
  for (size_t i = 0; i < sizeof before; ++i) bytes[i] = (unsigned char)(i * 37 + 11);
  before.flags = flags;
}

// Checks the registers that hold the counter's value, and excludes them from the comparison.
static uint64_t take_value(const struct Form* form) {
  const uint64_t value = after.rdx << 32 | after.rax;
  if (strcmp(form->name, "copy") == 0) {
    CHECK_EQUAL(after.general[8], after.rax);
    after.general[8] = 0;
  }
  if (strcmp(form->name, "short") == 0 || strcmp(form->name, "with_processor") == 0) {
    after.general[1] = 0;
  }
  if ((form->what & kFlags) != 0) after.flags = 0;
  CHECK_EQUAL(after.rax >> 32, 0);
  if ((form->what & kTime) != 0) CHECK_EQUAL(after.rdx >> 32, 0);
  after.rax = after.rdx = 0;
  return value;
}

// The flags visible to a program: carry, parity, adjust, zero, sign, direction, overflow.
static const uint64_t kSomeFlags[] = {0x202, 0x202 | 0xcd5, 0x202 | 0x845, 0x202 | 0x490};

static void look(const struct Form* form) {
  for (size_t f = 0; f < sizeof kSomeFlags / sizeof kSomeFlags[0]; ++f) {
    fill(kSomeFlags[f]);
    struct Registers first;
    uint64_t last = 0;
    for (int i = 0; i < READS; ++i) {
      form->read();
      const uint64_t value = take_value(form);
      if ((form->what & kTime) != 0) CHECK(value > last);
      last = value;
      if (i == 0) first = after;
      CHECK(memcmp(&first, &after, sizeof after) == 0);
    }
    if ((form->what & kFlags) == 0 && strcmp(form->name, "compare") != 0) {
      CHECK_EQUAL(after.flags, kSomeFlags[f]);
    }
  }
}

int main(void) {
  const int changes = is_virtual();
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; ++i) {
    look(&forms[i]);
    CHECK_EQUAL(is_changed(forms[i].site), changes && (forms[i].what & kKnown) != 0);
    printf("%s\n", forms[i].name);
  }
  return succeed();
}
