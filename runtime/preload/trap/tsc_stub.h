// SPDX-License-Identifier: Apache-2.0
#pragma once
// Machine code that reads virtual time where a program has RDTSC, without the kernel.
//
// RDTSC has two bytes and a jump five, so the instruction behind it moves as well.  The jump leads
// to a stub of the place's own:
//
//   site:  jmp stub            stub:   lahf; seto %al              the flags, in %rax
//          (rest of I)                 the thread is inside of Crane, or its next read is a turn:
//   next:                                go to trap
//                                      count this read, and one nanosecond
//                                      restore the flags; %edx:%eax = the thread's time
//                              after:  I, the instruction behind RDTSC
//                                      jmp next
//                              trap:   restore the flags; rdtsc; jmp after
//
// A stub uses no register but the two that RDTSC defines, and no stack: the red zone, all other
// registers and the flags stay.  What a stub cannot answer is the trap of before, of its own RDTSC.
// All processors since 2006 have lahf in 64-bit mode (x86-64-v2).
//
// A jump of the program's may lead to I (the end of two ways to read that a compiler has merged,
// a table of jumps, a thread that stands there).  So the byte at I's old place is always int3: it
// is the second byte of the jump's displacement, and the stub lies where that comes out.
//
// Threads: any; pure functions.

#include <cstddef>
#include <cstdint>

namespace crane::tsc {

inline constexpr unsigned char kRead[] = {0x0f, 0x31};  // rdtsc
inline constexpr unsigned char kBreak = 0xcc;           // int3
inline constexpr std::size_t kJump = 5;                 // bytes of jmp with 32 bits
inline constexpr std::size_t kStubMax = 96;

// Where a thread has what it needs, relative to %fs.
struct ThreadWords {
  std::int32_t application;  // byte: 0 = inside of Crane
  std::int32_t reads;        // 32 bits: since its last turn
  std::int32_t now;          // 64 bits: what it has last read
};

struct Stub {
  unsigned char code[kStubMax];
  std::size_t size;
  std::size_t after;  // where the moved instruction begins
};

// The lowest address from `from` on at which a stub for `site` may begin.
std::uintptr_t next_place(std::uintptr_t site, std::uintptr_t from) noexcept;

// The stub at `place` for the RDTSC whose code, at `site`, is `code`.  False: the instruction
// behind it is not known, or too short, or something is out of the reach of 32 bits.
// REQUIRES that next_place() gave `place`.
bool build(std::uintptr_t site, const unsigned char* code, std::uintptr_t place,
           const ThreadWords& words, Stub& out) noexcept;

// The jump from `site` to `place`.
void build_jump(std::uintptr_t site, std::uintptr_t place, unsigned char (&out)[kJump]) noexcept;

}  // namespace crane::tsc
