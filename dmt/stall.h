// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stall rule (dmt/DESIGN.md, rules 5 and 11): what becomes of a thread that has the
// turn, is in the application's code and takes no operation: a loop on a word that another thread
// will write, a lock inside of libc whose owner waits for the turn.
//
// The leader finds such a thread, holds it where it is and proposes PREEMPT(slot, clock, where).
// Every replica obeys at that clock: the slot gives way, which is one tick, to the tail of the run
// queue.  In serial mode its thread is held until the turn comes round to it again, so that still
// only the turn holder runs; in parallel mode it runs on, as code between turns does.
//
// Why all replicas can obey: an operation of a follower waits while the clock is not below
// `leader_clock_limit`, the clock that the leader is known to have passed.  So no follower is ever
// past a clock at which the leader may still decide.  Code between operations does not wait: a
// follower's thread reaches the loop that the leader's was found in, and gives way there, or at its
// next operation.
//
// Why it does not matter where exactly: a loop that only looks changes nothing, however often it
// looked; and code without data races cannot tell when the others ran.  The rule catches a thread
// only in a small loop (kSpinBytes) for kSpinFirstNs of its own processor time, or asleep in the
// kernel; and sooner only at a place where one was caught before.  Even there it must have looked
// since it got the turn, and stayed: one that would leave the loop at its next look does so on the
// other replicas, and what it does then is seen by those who wait for it in loops of theirs.  What
// remains, and is said in runtime/preload/README.md, is a loop that races and gives up by itself
// after longer than that.
//
// Computations (StallRule::kComputations) are the other use of the same agreement: who has had the
// turn for kComputationNs and is in the application's code need not be waited for.  Its order says
// that it leaves: at that clock its slot is detached (scheduler.h), its thread computes on beside
// the turn, and an ATTACH brings it back at its next operation.  No replica can tell when it
// computed, if it is the only thread of a process that shares no memory (kDetachComputation); in
// all other cases somebody has to know that the program does not race there
// (kDetachAnyComputation).
//
// Threads / Processes: as said per function.
//
// INVARIANT DMT-W1  An order is obeyed by the slot that it names, at its clock, holding the turn,
//               in the application's code or before its next operation; anything else is a
//               divergence: another slot that is there, with the turn and at that clock or later,
//               fences.
// INVARIANT DMT-W2  told never exceeds the clock of an order that was not obeyed.
// INVARIANT DMT-W3  At most one slot is caught: the one that has the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"
#include "dmt/preempt_requests.h"

namespace crane::dmt {

// --- the thread's part -------------------------------------------------------------------------

// What a probe sees of the thread that it interrupted.
struct Sample {
  std::uint64_t instruction;  // address of the next one
  std::int64_t cpu_ns;        // processor time of this thread
  std::int64_t physical_ns;   // CLOCK_MONOTONIC
  std::uint64_t registers;    // a hash of all that it has in them
  std::int64_t sleeps;        // how often it went to sleep in the kernel, ever
};

// What a thread remembers from one probe to the next.
struct ProbeMemory {
  std::uint64_t clock = kNoClock;
  std::int64_t ran_ns;        // processor time at this clock, without the probes' own
  std::int64_t awake_ns;      // CLOCK_MONOTONIC: when it was last seen to have run without a sleep
  std::uint64_t low, high;    // instructions seen at this clock
  std::uint32_t samples = 0;  // taken at this clock
  std::uint32_t looks = 0;    // of them, the last in a row, at a known place: kAlikeLooks for each
  // When the last probe let it go on, which the caller of probed() sets, and with what.  The next
  // probe may be there before the thread has run at all, and its way there may have taken long.
  std::int64_t released_cpu_ns = 0, released_sleeps = 0;
  std::uint64_t registers = 0;
};

// Called in the thread of `me`, in the application's code, by a probe.  Does not return before the
// thread may go on.  True when it gave way.
bool probed(Layout& w, Slot me, const Sample& sample, ProbeMemory& memory) noexcept;

// --- the node's part ---------------------------------------------------------------------------

// The holder of the turn, and whether the stall rule could help: somebody else is runnable, or an
// entry waits.  A glimpse, true at some moment during the call; `slot` kNone: no thread has it.
struct Glimpse {
  std::uint16_t slot;
  std::uint64_t clock;
  bool in_operation;  // within Crane: nothing to be done, it will come out
  bool helps;
  bool known;  // this slot was preempted before
};
Glimpse glimpse(Layout& w) noexcept;

// True while a slot is caught; then `body` is what to propose.
bool has_held_thread(const Layout& w, PreemptBody& body) noexcept;
// The caught slot goes on as if nothing had been: this replica does not lead any more.
void release_held_thread(Layout& w) noexcept;

}  // namespace crane::dmt
