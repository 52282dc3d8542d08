// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processor event that counts retired conditional branches (rr's choice, by vendor).  The
// processor retires the same number whenever it runs the same code, so a slice may end at such a
// count (runtime/preload/turn/branch_slices.h).
//
// The events of different processors count different things, so replicas agree on one
// (proxy/host/agreed.h).
//
// Threads: any.

#include <cstdint>

namespace crane {

struct BranchEvent {
  std::uint32_t code = 0;    // of PERF_TYPE_RAW; 0: no known event on this processor
  std::uint32_t margin = 0;  // the interrupt is at most this many branches late
};

// For tests: the program itself counts, and crane-solo interrupts it (branch_counter.h).
inline constexpr std::uint32_t kSimulatedEvent = 1;
// For tests: each instruction of any program counts as one, by single-stepping.
inline constexpr std::uint32_t kSteppedEvent = 2;

// About how many branches a thread executes in a microsecond.  A slice of N us lasts N times as
// many.
inline constexpr std::uint64_t kBranchesPerUs = 400;

// The event of the processor that executes this call.
BranchEvent branch_event() noexcept;
// The margin of an event that another program has chosen; 0: the event causes no interrupts.
std::uint32_t margin_of(std::uint32_t code) noexcept;

// Opens and starts a user-mode counter of the calling thread that interrupts it after every
// `period` branches.  Returns its descriptor, or -errno.
long open_branch_counter(std::uint32_t code, std::uint64_t period) noexcept;

}  // namespace crane
