// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first instruction of a function, as far as it must be known to run it at another place.
//
// Threads: any; a pure function.

#include <cstddef>

namespace crane {

inline constexpr std::size_t kInstructionMax = 15;  // bytes; the processor's own bound

// The bytes of the instruction at `code` when it does the same wherever it stands; 0: it is
// relative to its place (jumps, %rip), or none of those that compilers begin functions with.  Reads
// no more than it needs.
std::size_t movable_length(const unsigned char* code) noexcept;

}  // namespace crane
