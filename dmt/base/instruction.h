// SPDX-License-Identifier: Apache-2.0
#pragma once
// One instruction, as far as it must be known to run it at another place.
//
// Threads: any; a pure function.

#include <cstddef>

namespace crane {

inline constexpr std::size_t kInstructionMax = 15;  // bytes; the processor's own bound

struct Move {
  std::size_t length = 0;  // bytes; 0: a jump, or none of those that compilers begin functions
                           // with
  std::size_t displacement = 0;  // where its 32 bits relative to %rip begin; 0: it has none
};

// The instruction at `code`.  Reads no more than it needs.
Move move_of(const unsigned char* code) noexcept;

// The bytes of the instruction at `code` when it does the same wherever it stands; else 0.
std::size_t movable_length(const unsigned char* code) noexcept;

// Of a call through memory, what a jump through the same memory is: `jump`, and how it moves.
// Length 0: it is no such call, or its memory is relative to the stack pointer.
Move jump_of_call(const unsigned char* code, unsigned char (&jump)[kInstructionMax]) noexcept;

}  // namespace crane
