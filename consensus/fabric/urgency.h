// SPDX-License-Identifier: Apache-2.0
#pragma once
// For some milliseconds after a peer's death the loop's thread runs before ordinary threads.
//
// A process that dies tears its memory down at its own priority, in the kernel, a millisecond at a
// time; its server is killed and does the same.  Meanwhile the replicas that have to elect a leader
// wait for a processor: half of a fail-over on a busy machine.  So who learns of a death first
// gives the loop's thread a real-time priority (SCHED_RR), for as long as a fail-over takes.
// Without the privilege nothing changes.
//
// Threads: begin() from any; the rest from the loop's thread, which made the object.

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace crane::consensus {

class Urgency {
 public:
  Urgency() noexcept;
  void begin() noexcept;
  // Ends it when it is over.  Cheap when there is none.
  void end_when_over() noexcept;
  // For a thread that does nothing but wait for deaths.
  static void always() noexcept;

 private:
  const pid_t loop_;
  std::atomic<std::uint64_t> until_ns_{0};
};

}  // namespace crane::consensus
