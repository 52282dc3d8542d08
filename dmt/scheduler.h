// SPDX-License-Identifier: Apache-2.0
#pragma once
// PARROT's round-robin scheduler over process-shared memory (CRANE 3.1, DESIGN D1-D4, D9, D16).
//
// A synchronisation operation of the server is done only by the thread that holds the turn:
//     get_turn(w, me);  ... look at and change what is shared ...;  put_turn(w, me, op);
// or, where it must block,  wait(w, me, object, deadline, op)  between the two.  Everything in the
// Layout that is not marked otherwise may be touched exactly between get_turn and put_turn.
//
// The clock counts turns and advances only under a grant; when the grant is used up, or when no
// thread is runnable (then the rest of it is dropped in O(1)), the next entry of the Paxos sequence
// is admitted by whoever has the turn: a pure function of the log.  With no entry there, the turn
// is left lying (kHolderIdle) and the node, slot 0, picks it up when it has pushed one.
//
// Serial mode: a thread keeps the turn from one operation to the next, so that only one thread of
// all the replica's processes runs; put_turn does not return without the turn.
//
// Threads / Processes: any thread may call get_turn for its own slot; the rest REQUIRES the turn.
//
// INVARIANT DMT-T1  At most one slot holds the turn.
// INVARIANT DMT-T2  The holder is the head of the run queue, or no slot is runnable, or it is
//               between wait()/release_slot() and the hand-off.
// INVARIANT DMT-T3  A slot is in the run queue iff kRunnable, in a wait bucket iff kWaiting with an
//               object.
// INVARIANT DMT-T4  clock never advances with grant_left == 0 (but under Admission::kArrival).
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

// Resets the scheduler of a fresh, zeroed layout.  Called once by the node before anybody attaches.
void initialise_scheduler(Layout& w) noexcept;

// --- turns -----------------------------------------------------------------------------------

// Blocks until `me` holds the turn.  A dead slot's thread never returns.
CRANE_TAKES_TURN inline void get_turn(Layout& w, Slot me) noexcept;

// The same, but false where `me` is detached or an order has it leave now (stall.h): it goes on
// beside the turn, and an operation that would not have begun then does not begin.
bool get_turn_or_leave(Layout& w, Slot me) noexcept;

// Ends an operation: one tick of the clock, folded into the schedule hash with `result` (which must
// be a value that is the same on every replica: no address, no inode).  `yield` ends the quantum.
// In parallel mode the caller may or may not hold the turn afterwards; in serial mode it does.
CRANE_PUTS_TURN void put_turn(Layout& w, Slot me, Operation op, std::uint64_t result,
                              bool yield) noexcept;

// Ends an operation as put_turn with `yield`, but returns without the turn in serial mode too: the
// caller does something that no other thread can observe until its next get_turn.  It stays in the
// run queue: who comes to it there waits, and quiescence does (D16).
CRANE_PUTS_TURN void yield_without_turn(Layout& w, Slot me, Operation op) noexcept;

// Blocks `me` until signal(object), wake(me), or virtual time reaches `deadline_ns`.  Holds the
// turn before and after.  object 0: only wake() or the deadline.  Counts as one turn.
CRANE_REQUIRES_TURN WakeReason wait(Layout& w, Slot me, std::uint64_t object,
                                    std::int64_t deadline_ns, Operation op) noexcept;

// As wait(), at a soft barrier (rule 13): a TIME entry that finds no thread runnable ends it as
// its deadline would, and the leader proposes one when that is so and no input is under way.
CRANE_REQUIRES_TURN WakeReason wait_at_soft_barrier(Layout& w, Slot me, std::uint64_t object,
                                                    std::int64_t deadline_ns,
                                                    Operation op) noexcept;
// Ends an operation and with it the slot's part in the schedule until reattach: agreed detachment
// (rules 3 and 4; DESIGN D3b).  The thread leaves the run queue at this turn, on every replica, and
// may block or compute for as long as it likes: no thread waits for it, and it does not stand in
// the way of quiescence.  It touches nothing that is shared through the scheduler: its next
// get_turn is the reattachment.  In serial mode it runs beside the turn holder, so its code until
// then must not race with the others'.  Does not hold the turn on return.
CRANE_PUTS_TURN void detach(Layout& w, Slot me, Operation op) noexcept;
// Waits until ATTACH is admitted, which the leader proposes when its own thread has got here; a
// replica that admits it before its own thread is here waits for the thread.  Holds the turn on
// return.  get_turn calls it for a detached slot.
void reattach(Layout& w, Slot me) noexcept;
CRANE_TURN_UNCHECKED inline void get_turn(Layout& w, Slot me) noexcept {
  if (!get_turn_or_leave(w, me)) reattach(w, me);
}
// Obeys a preempt request: gives way.  REQUIRES has_preempt_request.  In serial mode returns with
// the turn.
void give_way(Layout& w, Slot me) noexcept;

// Passes the turn on for ever after the caller released its own slot.
CRANE_PUTS_TURN void leave(Layout& w, Slot me) noexcept;

// --- the node --------------------------------------------------------------------------------

// Called by the node after it pushed entries: if no thread has the turn, admits what can be
// admitted and hands the turn to the first runnable thread.  True when it did.  On a fenced replica
// the node keeps the turn, here and in give_up_turn(): it never sleeps among the threads that it
// is to end.
bool admit_from_node(Layout& w) noexcept;

// The node takes the turn that is unowned, so that no thread goes on until give_up_turn(); false:
// a thread has it.  For checkpoints (quiescence.h): no entry may be pushed in between.
bool take_unowned_turn(Layout& w) noexcept;
void give_up_turn(Layout& w) noexcept;

}  // namespace crane::dmt
