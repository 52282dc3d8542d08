// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stub of a tick point (dmt/slices.h): counts a passage of the instructions at `site`, does
// what they did, and continues after them. It runs on its caller's stack and changes no register,
// so unwinders and debuggers do not notice it.
//
//   site:  call F   ->  call stub     stub: count; jmp F
//   site:  call *M  ->  call stub     stub: count; jmp *M     (nops fill the site)
//   site:  jmp L    ->  jmp stub      stub: count; jmp L
//   site:  I1 I2 .. ->  jmp stub      stub: count; I1 I2 ..; jmp after them
//
// where `count` subtracts the weight from the rest of the thread's slice. When nothing is left, it
// executes int3 at `stop`, with all registers and flags as they were at the site.
//
// Jumps may lead only to the first of several instructions; proxy/ticks ensures this when it
// chooses a point. A call among them is refused, because its return address would be in the stub.
//
// Threads: any; pure functions.

#include <cstddef>
#include <cstdint>

#include "dmt/sequence/entry.h"
#include "runtime/preload/ground/assembler.h"

namespace crane::ticks {

inline constexpr std::size_t kStubMax = 128;
// The most bytes that a stub replaces: 4 and one more instruction. The stub has room even if all
// are short jumps, which are longer there.
inline constexpr std::size_t kReplacedMax = 19;
// Size of the replacing instruction without nops; its distance is in the last 4 bytes.
inline constexpr std::size_t kEntryBytes = 5;

// Offsets of the thread's words from %fs.
struct ThreadWords {
  std::int32_t left;   // 64 bits: rest of the slice, picoseconds
  std::int32_t saved;  // 64 bits: saved %rax
};

struct Stub {
  unsigned char code[kStubMax];
  std::size_t size;
  std::size_t weight;  // position of its 32 bits
  std::size_t stop;    // int3
  std::size_t moved;   // start of the site's instructions
  // For each byte of the site: the new position of the instruction that began there; 0: none began
  // there.
  unsigned char begins[kReplacedMax];
  // The program's position at the stop for unwinders: the site, or the function that the site calls
  // directly, because the return address is already on the stack.
  std::uintptr_t shown;
};

// Builds the stub at `place` for the instructions at `site`, which are at `code`. Returns null, or
// why it is impossible.
const char* build(const TickPoint& point, std::uintptr_t site, const unsigned char* code,
                  std::uintptr_t place, const ThreadWords& words, Stub& out) noexcept;

// Builds the replacement of the `bytes` at `site`: a jump or call to `place`, then nops.
void build_entry(std::uintptr_t site, const unsigned char* code, std::size_t bytes,
                 std::uintptr_t place, unsigned char (&out)[kReplacedMax]) noexcept;

}  // namespace crane::ticks
