// SPDX-License-Identifier: Apache-2.0
#pragma once
// The event of a processor that counts retired conditional branches, of which it retires the same
// number whenever it runs the same code: rr's choice, by vendor.  A slice may end at such a count
// (runtime/preload/turn/branch_slices.h).
//
// The events differ in what they count, so replicas agree on one (proxy/host/agreed.h).
//
// Threads: any.

#include <cstdint>

namespace crane {

struct BranchEvent {
  std::uint32_t code = 0;    // of PERF_TYPE_RAW; 0: this processor has none that is known
  std::uint32_t margin = 0;  // the interrupt comes at most so many branches after it was due
};

// For tests: the program counts, and crane-solo interrupts it (branch_counter.h).
inline constexpr std::uint32_t kSimulatedEvent = 1;
// For tests: each instruction of any program counts as one, by single steps.
inline constexpr std::uint32_t kSteppedEvent = 2;

// About so many branches does a thread execute in a microsecond.  A slice of N us has N times as
// many.
inline constexpr std::uint64_t kBranchesPerUs = 400;

// Of the processor that this runs on.
BranchEvent branch_event() noexcept;
// Of an event that another program has chosen; 0: there are no interrupts.
std::uint32_t margin_of(std::uint32_t code) noexcept;

// A counter of the calling thread's, in user mode, that is on and interrupts after each `period`:
// its descriptor, or -errno.
long open_branch_counter(std::uint32_t code, std::uint64_t period) noexcept;

}  // namespace crane
