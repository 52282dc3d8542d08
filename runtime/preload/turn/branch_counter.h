// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many branches the calling thread has executed, Crane's own among them, and an interrupt
// (kInterruptSignal) after so many more.  Of the processor (perf_event_open), or simulated.
//
// A simulated one belongs to a test program (tests/interpose/branches.h): it counts in memory at a
// fixed address, and where the interrupt is due it waits for crane-solo's signal.
//
// Threads: the own counter only; read() may run in a signal handler.

#include <csignal>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::branches {

// A process that has just begun another program ignores it; the stall rule's as well, which does
// not go together with counters.
inline constexpr int kInterruptSignal = SIGURG;

// As tests/interpose/branches.h has it: entry (%fs >> 12) % kSimulatedMax is a thread's.
struct SimulatedBranches {
  std::uint64_t count;   // the program's
  std::uint64_t gate;    // the program goes no further before it was interrupted
  std::uint32_t thread;  // whose it is; 0: the entry is free
  std::uint32_t unused[11];
};
inline constexpr std::uintptr_t kSimulatedAt = 0x10'0000'0000;
inline constexpr std::size_t kSimulatedMax = 61;

// Once per process, before open(): which counter it is.
void choose_counter(const dmt::Configuration& configuration, std::uint64_t margin) noexcept;

// Of the calling thread, which had none or is the copy of another process' thread; the first
// interrupt comes after `period`.  The replica is fenced where the kernel refuses.
void open(std::uint64_t period) noexcept;
void close() noexcept;

// Has no conditional branch of its own.  0: the counter is lost.
extern std::uint64_t (*read)() noexcept;

// The next interrupt is due after so many branches.
void interrupt_in(std::uint64_t branches) noexcept;

// Where Crane executes branches of its own: a simulated counter counts some, too (BRANCH-2).
void spend() noexcept;

}  // namespace crane::branches
