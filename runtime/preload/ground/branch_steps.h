// SPDX-License-Identifier: Apache-2.0
#pragma once
// The position of a thread relative to the end of its slice, which is a count of branches: far from
// it, so near that each instruction is stepped, or at the end.
//
// A counter's interrupt is late by a varying number of branches (its skid). So it is requested
// `margin` branches early, and the rest is stepped.
//
// INVARIANT BRANCH-1  A slice ends at the first instruction that is reached with its count of
//     branches and at which it may end, never where an interrupt happens to come.
//
// Threads: the own thread's; pure functions.

#include <cstdint>

namespace crane::branches {

struct Lengths {
  std::uint64_t slice = 0;   // branches; >= kMarginsMin margins, or <= one: all is stepped
  std::uint64_t margin = 0;  // the most that an interrupt may be late
};
inline constexpr std::uint64_t kMarginsMin = 8;
// A slice that cannot end within this many branches is extended by half a slice.
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
  std::uint64_t count;   // the program's branches since the slice began
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
  std::uint64_t interrupt_in = 0;  // branches until the next interrupt; 0: unchanged
};

Action step(Slice& slice, const Lengths& lengths, const Event& event) noexcept;

// The state of a thread (ThreadBlock).
struct ThreadState {
  int fd = -1;  // -1: counts nothing
  Slice slice;
  std::uint64_t base = 0;    // the counter's value at branch 0 of the slice, outside Crane
  std::uint64_t frozen = 1;  // inside: one more than the slice's branches; 0: outside
  std::uint64_t hidden = 0;  // branches of our handlers, which the counter has counted
  std::uint64_t pushed = 0;  // target of the step over a pushf; 0: another instruction
};

}  // namespace crane::branches
