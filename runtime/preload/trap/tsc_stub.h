// SPDX-License-Identifier: Apache-2.0
#pragma once
// Machine code that reads virtual time in place of a program's RDTSC, without the kernel.
//
// RDTSC has two bytes and a jump five, so the next instruction moves as well. The jump leads to the
// stub of this place:
//
//   site:  jmp stub            stub:   lahf; seto %al              the flags, in %rax
//          (rest of I)                 if the thread is inside Crane, or its next read is a
//   next:                                turn: go to trap
//                                      count this read, and one nanosecond
//                                      restore the flags; %edx:%eax = the thread's time
//                              after:  I, the instruction after RDTSC
//                                      jmp next
//                              trap:   restore the flags; rdtsc; jmp after
//
// A stub uses only the two registers that RDTSC sets, and no stack: the red zone, all other
// registers and the flags are unchanged. A read that the stub cannot handle traps at the stub's own
// RDTSC. All processors since 2006 have lahf in 64-bit mode (x86-64-v2).
//
// A jump of the program may lead to I (two ways to read that a compiler merged, a jump table, a
// thread that is at I). So the byte at I's old place is always int3: it is the second byte of the
// jump's displacement, and the stub is placed to make it so.
//
// Threads: any; pure functions.

#include <cstddef>
#include <cstdint>

namespace crane::tsc {

inline constexpr unsigned char kRead[] = {0x0f, 0x31};  // rdtsc
inline constexpr unsigned char kBreak = 0xcc;           // int3
inline constexpr std::size_t kJump = 5;                 // bytes of jmp with 32 bits
inline constexpr std::size_t kStubMax = 96;

// Offsets of the thread's words from %fs.
struct ThreadWords {
  std::int32_t application;  // byte: 0 = inside Crane
  std::int32_t reads;        // 32 bits: reads since its last turn
  std::int32_t now;          // 64 bits: the last value read
};

struct Stub {
  unsigned char code[kStubMax];
  std::size_t size;
  std::size_t after;  // start of the moved instruction
};

// Returns the lowest address from `from` on at which a stub for `site` may begin.
std::uintptr_t next_place(std::uintptr_t site, std::uintptr_t from) noexcept;

// Builds the stub at `place` for the RDTSC at `site`, whose code is `code`. False: the next
// instruction is unknown or too short, or a target is out of reach of 32 bits. REQUIRES that
// next_place() returned `place`.
bool build(std::uintptr_t site, const unsigned char* code, std::uintptr_t place,
           const ThreadWords& words, Stub& out) noexcept;

// Builds the jump from `site` to `place`.
void build_jump(std::uintptr_t site, std::uintptr_t place, unsigned char (&out)[kJump]) noexcept;

}  // namespace crane::tsc
