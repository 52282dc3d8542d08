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

namespace crane::dmt {

inline constexpr Slot kNodeSlot{0};
inline constexpr Slot kNoSlot{kNone};
inline constexpr std::int64_t kNoDeadline = INT64_MAX;

// What an operation was, for the schedule hash; values are the runtime's and the same everywhere.
using Operation = std::uint32_t;

// Resets the scheduler of a fresh, zeroed layout.  Called once by the node before anybody attaches.
void initialise_scheduler(Layout& w) noexcept;

// --- turns -----------------------------------------------------------------------------------

// Blocks until `me` holds the turn.  A dead slot's thread never returns.
CRANE_TAKES_TURN inline void get_turn(Layout& w, Slot me) noexcept;

// The same, but false where `me` is detached or an order has it leave now (stall.h): it goes on
// beside the turn, and an operation that would not have begun then does not begin.
bool get_turn_or_leave(Layout& w, Slot me) noexcept;

inline bool has_turn(const Layout& w, Slot me) noexcept {
  return w.scheduler.holder.load(std::memory_order_acquire) == value(me);
}

// Ends an operation: one tick of the clock, folded into the schedule hash with `result` (which must
// be a value that is the same on every replica: no address, no inode).  `yield` ends the quantum.
// In parallel mode the caller may or may not hold the turn afterwards; in serial mode it does.
CRANE_PUTS_TURN void put_turn(Layout& w, Slot me, Operation op, std::uint64_t result,
                              bool yield) noexcept;

// The operation that `me` will end next uses up the grant: the next entry, which brings time and
// input, is admitted after it.  For loops that look at the clock or poll and find nothing (D17):
// what they wait for is not among the turns that are left.
void end_grant(Layout& w) noexcept;

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
// Called by admission at a TIME entry.
void release_soft_barriers(Layout& w) noexcept;

// Makes up to `count` waiters of `object` runnable, oldest first; returns how many.
std::uint32_t signal(Layout& w, std::uint64_t object, std::uint32_t count) noexcept;
inline constexpr std::uint32_t kAll = UINT32_MAX;

// The same for those of them whose SlotRecord::wait_bits share one with `bits` (FUTEX_WAKE_BITSET).
std::uint32_t signal_bits(Layout& w, std::uint64_t object, std::uint32_t count,
                          std::uint32_t bits) noexcept;

// Up to `count` waiters of `from`, oldest first, wait for `to` from now on, behind its own; returns
// how many.
std::uint32_t requeue(Layout& w, std::uint64_t from, std::uint64_t to,
                      std::uint32_t count) noexcept;

// Makes a waiting slot runnable whatever it waits for; no effect on one that does not wait.
bool wake(Layout& w, Slot slot, WakeReason reason) noexcept;

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
// ATTACH(slot, number) can be admitted: its thread is here, or it concerns no thread any more.
bool may_attach(const Layout& w, std::uint32_t slot, std::uint32_t number) noexcept;
// Its effect.  Called by admission only.
void attach(Layout& w, std::uint32_t slot, std::uint32_t number) noexcept;
// What the operation that `me` will end next is about, and who called it (TurnRecord).
inline void note_object(Layout& w, std::uint64_t object) noexcept {
  w.turns[(w.scheduler.clock + 1) % kTurnHistory].object = object;
}
inline void note_caller(Layout& w, std::uint64_t address) noexcept {
  w.turns[(w.scheduler.clock + 1) % kTurnHistory].caller = address;
}

// --- slots -----------------------------------------------------------------------------------

// Takes a free slot for a thread of `process` and puts it at the tail of the run queue.  kNoSlot
// when the table is full (the caller answers EAGAIN, the same on every replica).
Slot create_slot(Layout& w, std::uint16_t process) noexcept;

// The slot's thread ends: it leaves the queues and the slot is free for reuse.  Does not pass on
// the turn: see leave().
void release_slot(Layout& w, Slot slot) noexcept;

// The slot's process has ended for the schedule while its thread may still exist: it leaves the
// queues, and the number is not reused before release_slot (at the reaping of the process).
void kill_slot(Layout& w, Slot slot) noexcept;

// Passes the turn on for ever after the caller released its own slot.
CRANE_PUTS_TURN void leave(Layout& w, Slot me) noexcept;

// --- virtual time and names --------------------------------------------------------------------

// An agreed 64-bit name for something that `me` creates now (D2): never 0.
std::uint64_t new_object(Layout& w, Slot me) noexcept;

// Timers other than slots' deadlines: timerfd, alarm.  kNone when there are none left; a process
// always has its own one (TimerKind::kProcess, once until it is destroyed).
inline constexpr std::uint16_t kFirstSharedTimer = kSlotsMax + kProcessesMax;
static_assert(kFirstSharedTimer + kPosixTimersMax < kTimersMax);
void initialise_timers(Layout& w) noexcept;
std::uint16_t create_timer(Layout& w, TimerKind kind, std::uint32_t owner) noexcept;
void destroy_timer(Layout& w, std::uint16_t timer) noexcept;
void arm_timer(Layout& w, std::uint16_t timer, std::int64_t deadline_ns) noexcept;
void disarm_timer(Layout& w, std::uint16_t timer) noexcept;

// The turn holder has read virtual time `ns` between turns: the replica's clock never goes back
// behind what one of its threads has seen (rule 8a).
inline void observe_time(Layout& w, std::int64_t ns) noexcept {
  if (ns > w.scheduler.now_ns) w.scheduler.now_ns = ns;
}

// Fires every deadline <= now_ns in (deadline, order of arming).  Called by admission only.
void fire_timers(Layout& w) noexcept;

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

// Rings the node's doorbell if it sleeps.  Set by the runtime (and by tests); null = none.
using Doorbell = void (*)() noexcept;
void set_doorbell(Doorbell ring) noexcept;
void ring_doorbell(Layout& w) noexcept;

// Publishes the output ring's record to the node: reserve, fill, publish (D12: waits physically,
// never logically, while the ring is full).
std::span<std::byte> reserve_output(Layout& w, std::uint32_t bytes) noexcept;
void commit_output(Layout& w, std::uint32_t bytes) noexcept;
// The same for what no client waits for: the node finds it when it looks the next time.
void commit_quietly(Layout& w, std::uint32_t bytes) noexcept;

}  // namespace crane::dmt
