// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stall rule (dmt/DESIGN.md, rules 5 and 11).  It concerns a thread that has the turn, is in
// the application's code and takes no operation: a loop on a word that another thread will write,
// or a lock inside libc whose owner waits for the turn.
//
// The leader finds such a thread, holds it there and proposes PREEMPT(slot, clock, where).  Every
// replica obeys at that clock: the slot gives way, which is one tick, and goes to the tail of the
// run queue.  In serial mode its thread is held until its next turn, so still only the turn holder
// runs. In parallel mode it continues to run, like any code between turns.
//
// Why all replicas can obey: an operation of a follower waits until the clock is below
// `leader_clock_limit`, the clock that the leader is known to have passed.  So no follower is ever
// past a clock at which the leader may still decide.  Code between operations does not wait: a
// follower's thread reaches the loop of the leader's thread and gives way there, or at its next
// operation.
//
// Why the exact place does not matter: a loop that only reads changes nothing, however often it has
// read; and code without data races cannot tell when other threads ran.  The rule holds a thread
// only in a small loop (kSpinBytes) for kSpinFirstNs of its own processor time, or asleep in the
// kernel; and sooner only at a place where a thread was held before.  Even there the thread must
// have read since it got the turn, and stayed.  A thread that would leave the loop at its next read
// does so on the other replicas, and threads that spin for its next action see that action.  One
// case remains, described in runtime/preload/LIMITS.md: a racy loop that gives up after a longer
// time.
//
// Computations (StallRule::kComputations) use the same agreement: the group need not wait for a
// thread that has had the turn for kComputationNs and is in the application's code.  The request
// detaches it: at that clock its slot leaves the schedule (scheduler.h), the thread continues to
// compute without the turn, and an ATTACH brings it back at its next operation.  No replica can
// tell when it computed if it is the only thread of a process that shares no memory
// (kDetachComputation).  In all other cases the operator must know that the program does not race
// there (kDetachAnyComputation).
//
// Threads / Processes: as stated per function.
//
// INVARIANT DMT-W1  The slot that a request names obeys it at its clock, holding the turn, in the
//               application's code or before its next operation.  Anything else is a divergence:
//               another slot with the turn at that clock or later fences.
// INVARIANT DMT-W2  leader_clock_limit never exceeds the clock of a request that was not obeyed.
// INVARIANT DMT-W3  At most one slot is held: the turn holder.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"
#include "dmt/preempt_requests.h"

namespace crane::dmt {

// --- the thread's part -------------------------------------------------------------------------

// A probe's view of the thread that it interrupted.
struct Sample {
  std::uint64_t instruction;  // address of the next instruction
  std::int64_t cpu_ns;        // processor time of this thread
  std::int64_t physical_ns;   // CLOCK_MONOTONIC
  std::uint64_t registers;    // a hash of all its registers
  std::int64_t sleeps;        // how often it has gone to sleep in the kernel
};

// A thread's state from one probe to the next.
struct ProbeMemory {
  std::uint64_t clock = kNoClock;
  std::int64_t ran_ns;        // processor time at this clock, without the probes' own
  std::int64_t awake_ns;      // CLOCK_MONOTONIC of the last probe that saw it run without a sleep
  std::uint64_t low, high;    // instructions seen at this clock
  std::uint32_t samples = 0;  // taken at this clock
  std::uint32_t looks = 0;    // latest looks in a row at a known place, kAlikeLooks for each
  // The thread's counters when the last probe released it (the caller of probed() sets them) and
  // its registers.  The next probe may come before the thread has run, and may itself have taken
  // long.
  std::int64_t released_cpu_ns = 0, released_sleeps = 0;
  std::uint64_t registers = 0;
};

// A probe calls it in the thread of `me`, in the application's code.  It returns when the thread
// may continue: true if the thread gave way.
bool probed(Layout& w, Slot me, const Sample& sample, ProbeMemory& memory) noexcept;

// --- the node's part ---------------------------------------------------------------------------

// The turn holder, and whether the stall rule could help: another thread is runnable, or an entry
// waits.  A snapshot that was true at some moment during the call; `slot` kNone: no thread has it.
struct TurnSnapshot {
  std::uint16_t slot;
  std::uint64_t clock;
  bool in_operation;  // inside Crane: nothing to do, it will return
  bool helps;
  bool known;  // this slot was preempted before
};
TurnSnapshot glimpse(Layout& w) noexcept;

// True while a slot is held; then `body` is the request to propose.
bool has_held_thread(const Layout& w, PreemptBody& body) noexcept;
// Releases the held thread, which continues as if it had not been held: this replica no longer
// leads.
void release_held_thread(Layout& w) noexcept;

}  // namespace crane::dmt
