// SPDX-License-Identifier: Apache-2.0
#pragma once
// The number of branches that the calling thread has executed, including Crane's own, and an
// interrupt (kInterruptSignal) after a given number of branches. The counter is the processor's
// (perf_event_open) or simulated.
//
// A test program provides a simulated counter (tests/interpose/branches.h). It counts in memory at
// a fixed address; where the interrupt is due, it waits for crane-solo's signal.
//
// Threads: the own thread's counter only; read() may run in a signal handler.

#include <csignal>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::branches {

// A process that has just executed another program ignores this signal. The stall rule uses it,
// too, but is not combined with counters.
inline constexpr int kInterruptSignal = SIGURG;

// As in tests/interpose/branches.h: a thread has the entry (%fs >> 12) % kSimulatedMax.
struct SimulatedBranches {
  std::uint64_t count;   // branches of the program
  std::uint64_t gate;    // the program stops here until it is interrupted
  std::uint32_t thread;  // owner; 0: the entry is free
  std::uint32_t unused[11];
};
inline constexpr std::uintptr_t kSimulatedAt = 0x10'0000'0000;
inline constexpr std::size_t kSimulatedMax = 61;

// Chooses the counter. Called once per process, before open().
void choose_counter(const dmt::Configuration& configuration, std::uint64_t margin) noexcept;

// Opens a counter for the calling thread, which has none or is a copy of another process' thread.
// The first interrupt comes after `period`. If the kernel refuses, the replica is fenced.
void open(std::uint64_t period) noexcept;
void close() noexcept;

// Contains no conditional branch. 0: the counter is lost.
extern std::uint64_t (*read)() noexcept;

// Requests the next interrupt after this many branches.
void interrupt_in(std::uint64_t branches) noexcept;

// Called where Crane executes its own branches, so that a simulated counter counts some of them
// (BRANCH-2).
void spend() noexcept;

}  // namespace crane::branches
