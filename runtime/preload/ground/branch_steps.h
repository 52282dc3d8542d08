// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a thread is relative to the end of its slice, which is a number of branches: far from it,
// so near that it is looked at after each instruction, or there.
//
// A counter's interrupt comes late by some branches (its skid), each time by another number.  So it
// is asked for `margin` branches early, and the rest is stepped.
//
// INVARIANT BRANCH-1  A slice ends at the first instruction that is reached with its number of
//               branches and at which it may end: never where an interrupt comes.
//
// Threads: the own thread's; pure functions.

#include <cstdint>

namespace crane::branches {

struct Lengths {
  std::uint64_t slice = 0;   // branches; at least kMarginsMin margins, or as many: all is stepped
  std::uint64_t margin = 0;  // what an interrupt may be late by
};
inline constexpr std::uint64_t kMarginsMin = 8;
// A slice that cannot end within so many branches goes on for half a slice more.
inline constexpr std::uint64_t kTriedBranches = 64;

struct Slice {
  std::uint64_t target = 0;  // branches from its beginning to its end
  bool near = false;
};

inline Slice new_slice(const Lengths& lengths) noexcept {
  return {lengths.slice, lengths.slice <= lengths.margin};
}

enum class What : std::uint8_t { kInterrupt, kStep };

struct Event {
  What what;
  std::uint64_t count;   // of the program's branches since the slice began
  bool inside = false;   // the thread is inside Crane
  bool may_end = false;  // at this instruction (TICK-2)
};

enum class Next : std::uint8_t {
  kRun,
  kStep,  // one instruction
  kEnd,   // a turn is due here
  kStop,  // the end has passed, at an unknown instruction
};

struct Action {
  Next next;
  std::uint64_t interrupt_in = 0;  // ask for an interrupt after so many branches; 0: as it is
};

Action step(Slice& slice, const Lengths& lengths, const Event& event) noexcept;

// What a thread keeps (ThreadBlock).
struct ThreadState {
  int fd = -1;  // -1: it counts nothing
  Slice slice;
  std::uint64_t base = 0;    // what the counter shows for no branch of the slice, outside of Crane
  std::uint64_t frozen = 1;  // inside: one more than the branches of the slice; 0: outside
  std::uint64_t hidden = 0;  // what our handlers have executed, which the counter has counted
  std::uint64_t pushed = 0;  // where the step over a pushf leads; 0: over another instruction
};

}  // namespace crane::branches
