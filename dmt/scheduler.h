// SPDX-License-Identifier: Apache-2.0
#pragma once
// PARROT's round-robin scheduler over process-shared memory (CRANE 3.1, DESIGN D1-D4, D9, D16).
//
// Only the thread that holds the turn performs a synchronisation operation of the server:
//     get_turn(w, me);  ... read and change shared state ...;  put_turn(w, me, op);
// To block, it calls  wait(w, me, object, deadline, op)  between the two.  Fields of the Layout
// without another mark may be accessed only between get_turn and put_turn.
//
// The clock counts turns and advances only under a grant.  When the grant is used up, or when no
// thread is runnable (the rest is then dropped in O(1)), the turn holder admits the next entry of
// the Paxos sequence: a pure function of the log.  If there is no entry, the turn is left unowned
// (kHolderIdle), and the node, slot 0, picks it up after it has pushed an entry.
//
// Serial mode: a thread keeps the turn from one operation to the next, so only one thread of all
// processes of the replica runs.  put_turn does not return without the turn.
//
// Threads / Processes: any thread may call get_turn for its own slot; the rest REQUIRES the turn.
//
// INVARIANT DMT-T1  At most one slot holds the turn.
// INVARIANT DMT-T2  The holder is the head of the run queue, or no slot is runnable, or it is
//               between wait()/release_slot() and the hand-off.
// INVARIANT DMT-T3  A slot is in the run queue iff kRunnable, in a wait bucket iff kWaiting with an
//               object.
// INVARIANT DMT-T4  clock never advances with grant_left == 0 (except under Admission::kArrival).
// INVARIANT DMT-T5  Wake-ups of one object are first come, first served by turn (D19).

#include <cstdint>
#include <span>

#include "dmt/base/ids.h"
#include "dmt/base/thread_safety.h"
#include "dmt/layout.h"
#include "dmt/node_link.h"
#include "dmt/slices.h"
#include "dmt/slots.h"
#include "dmt/timers.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {

// Resets the scheduler of a fresh, zeroed layout.  The node calls it once before any process
// attaches.
void initialise_scheduler(Layout& w) noexcept;

// --- turns -----------------------------------------------------------------------------------

// Blocks until `me` holds the turn.  A dead slot's thread never returns.
CRANE_TAKES_TURN inline void get_turn(Layout& w, Slot me) noexcept;

// Like get_turn(), but returns false if `me` is detached or a preempt request detaches it now
// (stall.h). Then the thread continues without the turn, and an operation that requires the turn
// does not begin.
bool get_turn_or_leave(Layout& w, Slot me) noexcept;

// Ends an operation: advances the clock by one turn and folds it into the schedule hash with
// `result`, which must be the same on every replica (no address, no inode).  `yield` ends the
// quantum. In serial mode the caller holds the turn afterwards; in parallel mode it may or may not.
CRANE_PUTS_TURN void put_turn(Layout& w, Slot me, Operation op, std::uint64_t result,
                              bool yield) noexcept;

// Ends an operation like put_turn with `yield`, but returns without the turn even in serial mode.
// The caller does something that no other thread can observe until its next get_turn.  It stays in
// the run queue, so a turn that reaches it waits, and so does quiescence (D16).
CRANE_PUTS_TURN void yield_without_turn(Layout& w, Slot me, Operation op) noexcept;

// Blocks `me` until signal(object), wake(me), or virtual time reaches `deadline_ns`.  Holds the
// turn before and after.  object 0: only wake() or the deadline.  Counts as one turn.
CRANE_REQUIRES_TURN WakeReason wait(Layout& w, Slot me, std::uint64_t object,
                                    std::int64_t deadline_ns, Operation op) noexcept;

// Like wait(), at a soft barrier (rule 13).  A TIME entry that finds no thread runnable ends it
// like its deadline.  The leader proposes one in that case if no input is under way.
CRANE_REQUIRES_TURN WakeReason wait_at_soft_barrier(Layout& w, Slot me, std::uint64_t object,
                                                    std::int64_t deadline_ns,
                                                    Operation op) noexcept;
// Ends an operation and detaches the slot from the schedule until reattach: agreed detachment
// (rules 3 and 4; DESIGN D3b).  The thread leaves the run queue at this turn, on every replica.  It
// may block or compute for any time: no thread waits for it, and it does not prevent quiescence.
// It touches nothing shared through the scheduler; its next get_turn reattaches it.  In serial mode
// it runs beside the turn holder, so its code until then must not race with other threads.  Does
// not hold the turn on return.
CRANE_PUTS_TURN void detach(Layout& w, Slot me, Operation op) noexcept;
// Waits until ATTACH is admitted.  The leader proposes it when its own thread has arrived; a
// replica that admits it earlier waits for its thread.  Holds the turn on return.  get_turn calls
// it for a detached slot.
void reattach(Layout& w, Slot me) noexcept;
CRANE_TURN_UNCHECKED inline void get_turn(Layout& w, Slot me) noexcept {
  if (!get_turn_or_leave(w, me)) reattach(w, me);
}
// Obeys a preempt request: gives way.  REQUIRES has_preempt_request.  In serial mode it returns
// with the turn.
void yield_turn(Layout& w, Slot me) noexcept;

// Passes the turn for the last time, after the caller released its own slot.
CRANE_PUTS_TURN void leave(Layout& w, Slot me) noexcept;

// --- the node --------------------------------------------------------------------------------

// The node calls it after it has pushed entries.  If no thread has the turn, it admits entries,
// hands the turn to the first runnable thread and returns true.  On a fenced replica the node keeps
// the turn, also in release_turn(): it never sleeps among the threads that it must end.
bool admit_from_node(Layout& w) noexcept;

// Takes the unowned turn for the node, so that no thread continues until release_turn(); false: a
// thread has it.  For checkpoints (quiescence.h): no entry may be pushed in between.
bool take_unowned_turn(Layout& w) noexcept;
void release_turn(Layout& w) noexcept;

}  // namespace crane::dmt
