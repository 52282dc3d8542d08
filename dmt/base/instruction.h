// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decodes one instruction, enough to run it at another address.
//
// Threads: any; a pure function.

#include <cstddef>

namespace crane {

inline constexpr std::size_t kInstructionMax = 15;  // bytes; the processor's own bound

struct Move {
  std::size_t length = 0;        // bytes; 0: a jump, or not one that compilers begin functions with
  std::size_t displacement = 0;  // offset of its 32 bits relative to %rip; 0: it has none
};

// Decodes the instruction at `code`.  Reads no more bytes than it needs.
Move move_of(const unsigned char* code) noexcept;

// The length of the instruction at `code` if it does the same at any address; else 0.
std::size_t movable_length(const unsigned char* code) noexcept;

// Turns a call through memory into a jump through the same memory: writes it to `jump` and returns
// how it moves.  Length 0: not such a call, or its memory is relative to the stack pointer.
Move jump_of_call(const unsigned char* code, unsigned char (&jump)[kInstructionMax]) noexcept;

}  // namespace crane
