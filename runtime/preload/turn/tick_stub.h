// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stub of a tick point (dmt/slices.h): counts a passage of the instructions at `site`, does
// what they did, and goes on behind them.  It runs on its caller's stack and changes no register,
// so that unwinders and debuggers see nothing of it.
//
//   site:  call F   ->  call stub     stub: count; jmp F
//   site:  call *M  ->  call stub     stub: count; jmp *M     (nops fill the site)
//   site:  jmp L    ->  jmp stub      stub: count; jmp L
//   site:  I1 I2 .. ->  jmp stub      stub: count; I1 I2 ..; jmp behind them
//
// where `count` takes the weight from what is left of the thread's slice, and executes int3 when
// nothing is left: at `stop`, with all registers and flags as they were at the site.
//
// Of several instructions only the first may be jumped to; the one who chose the point has seen to
// that (proxy/ticks).  A call among them is refused: its return address would be in the stub.
//
// Threads: any; pure functions.

#include <cstddef>
#include <cstdint>

#include "dmt/sequence/entry.h"
#include "runtime/preload/ground/assembler.h"

namespace crane::ticks {

inline constexpr std::size_t kStubMax = 128;
// Bytes of instructions: 4, and one more instruction.  Were they short jumps, which are longer in
// the stub, it would have room for them all the same.
inline constexpr std::size_t kReplacedMax = 19;
// Of what replaces them, without nops: its distance is in the last 4.
inline constexpr std::size_t kEntryBytes = 5;

// Where a thread has what it needs, relative to %fs.
struct ThreadWords {
  std::int32_t left;   // 64 bits: of its slice, picoseconds
  std::int32_t saved;  // 64 bits: %rax for a while
};

struct Stub {
  unsigned char code[kStubMax];
  std::size_t size;
  std::size_t weight;  // where its 32 bits are
  std::size_t stop;    // int3
  std::size_t moved;   // where the instructions of the site begin
  // For each byte of the site: where the instruction that began there is now; 0: none began there.
  unsigned char begins[kReplacedMax];
  // Where the program is at the stop, for what unwinds its stack: at the site, or at the function
  // that the site calls directly, whose return address is on the stack already.
  std::uintptr_t shown;
};

// The stub at `place` for the instructions at `site`, which are at `code`.  Null, or why there can
// be none.
const char* build(const TickPoint& point, std::uintptr_t site, const unsigned char* code,
                  std::uintptr_t place, const ThreadWords& words, Stub& out) noexcept;

// What replaces the `bytes` at `site`: a jump to `place`, or a call of it, and nops behind it.
void build_entry(std::uintptr_t site, const unsigned char* code, std::size_t bytes,
                 std::uintptr_t place, unsigned char (&out)[kReplacedMax]) noexcept;

}  // namespace crane::ticks
