// SPDX-License-Identifier: Apache-2.0
#pragma once
// One operation of the schedule from get_turn to put_turn, and what is due at its end: virtual
// signals and cancellation (DESIGN D1, D11).
//
//   int pthread_mutex_lock(pthread_mutex_t* m) {
//     Turn turn(Op::pthread_mutex_lock);
//     int error;
//     while ((error = real::pthread_mutex_trylock(m)) == EBUSY) turn.wait(object_of(m, ...));
//     turn.result(error);
//     return error;
//   }
//
// A blocking call that signals interrupt (EINTR) or that is a cancellation point:
//
//   Turn turn(Op::accept, Turn::kCancellationPoint);
//   while (!ready()) {
//     const WakeReason why = turn.wait(object, deadline);
//     if (why == WakeReason::kTimeout) ...
//     if (why == WakeReason::kInterrupted && !turn.interrupted(kRestarts)) { errno = EINTR; ... }
//   }
//
// The destructor puts the turn and then, outside Crane, runs the handlers of signals that became
// deliverable; errno is kept. A handler may longjmp or end the thread, so nothing may be held when
// the Turn ends, and the Turn must be the last object that ends in its scope.
//
// Threads: the own thread only. A thread without a slot must not make a Turn (THREAD-1).

#include <cerrno>
#include <cstdint>

#include "dmt/job_control.h"
#include "dmt/scheduler.h"
#include "dmt/slices.h"
#include "runtime/preload/ground/operations.h"
#include "runtime/preload/self/thread.h"

namespace crane {

// As SA_RESTART: the call may continue after a handler that requests it.
inline constexpr bool kRestarts = true;
inline constexpr bool kNeverRestarts = false;

// Fails as libc does.
inline int fail(int error) noexcept {
  errno = error;
  return -1;
}

// dmt::get_turn and dmt::wait for the calling thread. All turns of a thread come from these two.
CRANE_TAKES_TURN void take_turn() noexcept;
CRANE_REQUIRES_TURN dmt::WakeReason wait_for_turn(std::uint64_t object, std::int64_t deadline_ns,
                                                  Op op) noexcept;
// Blocks the threads of a stopped process at a turn (JOB-1). REQUIRES the turn.
CRANE_REQUIRES_TURN void block_while_stopped() noexcept;

// For clang's analysis a Turn holds the turn for all its life, also between put() and take(). So
// functions that get a Turn from their caller need no annotation.
class CRANE_HOLDS_TURN Turn {
 public:
  enum Point : std::uint8_t { kNoPoint, kCancellationPoint };

  CRANE_TAKES_TURN explicit Turn(Op op, Point point = kNoPoint) noexcept;
  CRANE_PUTS_TURN ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  dmt::Layout& w;

  // The value that the schedule hash folds: equal on every replica, so never an address or an
  // inode.
  void result(std::uint64_t value) noexcept { result_ = value; }
  void result(std::int64_t value) noexcept { result_ = static_cast<std::uint64_t>(value); }
  void result(int value) noexcept { result_ = static_cast<std::uint64_t>(value); }
  // Notes the object of the operation if neither wait() nor a signal does; for messages only.
  void about(std::uint64_t object) noexcept { dmt::note_object(w, object); }
  // Ends the quantum: other threads run first (rule 23).
  void yield() noexcept { yield_ = true; }

  // Yields, and uses up the grant: time and input come next (dmt::end_grant).
  void end_grant() noexcept {
    yield();
    dmt::end_grant(w);
  }

  // Yields, and ends the slice of this thread (dmt/slices.h).
  void end_slice() noexcept {
    yield();
    dmt::end_slice(w, own_slot());
  }

  // Blocks; holds the turn again on return.  `deadline_ns` in virtual monotonic time.
  CRANE_TURN_UNCHECKED dmt::WakeReason wait(std::uint64_t object,
                                            std::int64_t deadline_ns = dmt::kNoDeadline) noexcept;

  // wait() at a soft barrier (rule 13).
  CRANE_TURN_UNCHECKED dmt::WakeReason wait_at_soft_barrier(std::uint64_t object,
                                                            std::int64_t deadline_ns) noexcept;

  // Ends the operation and leaves the schedule by agreement until this thread's next operation
  // (dmt/scheduler.h). Signals wait until then.
  CRANE_TURN_UNCHECKED void detach() noexcept;

  // Called after wait() returned kInterrupted. Runs the handlers. If a cancellation is due, it does
  // not return, so watches and the like must have been removed. Holds the turn on return; true:
  // continue to wait, false: return EINTR.
  CRANE_TURN_UNCHECKED bool interrupted(bool restarts) noexcept;

  // Puts the turn early, without the deliveries of the end; take() takes it again.
  CRANE_TURN_UNCHECKED void put() noexcept;
  CRANE_TURN_UNCHECKED void take() noexcept;

  // Puts the turn and goes to the tail of the run queue; runs without the turn in serial mode, too.
  // For a kernel call that no other thread can observe; take() must follow.
  CRANE_TURN_UNCHECKED void yield_without_turn() noexcept;

  // Ends the operation without deliveries, for a thread or process that ends.
  void dismiss() noexcept { held_ = false; }

  // Virtual monotonic time at this turn.
  std::int64_t now() const noexcept { return w.scheduler.now_ns; }

 private:
  void act_on_cancellation() noexcept;
  CRANE_TURN_UNCHECKED void finish() noexcept;

  const Op op_;
  const Point point_;
  bool yield_ = false;
  bool held_ = false;
  std::uint64_t result_ = 0;
};

// True when a virtual cancellation is due for this thread.  REQUIRES the turn.
inline bool cancellation_due() noexcept {
  return self.entry != nullptr && self.entry->cancel_requested && !self.cancel_disabled;
}

// A cancellation point that does not block.
void cancellation_point(Op op) noexcept;

// Ends this thread as cancelled: runs the cleanup handlers outside Crane.
[[noreturn]] void cancel_self() noexcept;

// --- wrap_signal.cc ------------------------------------------------------------------------------

enum class Handlers : std::uint8_t { kNoneRan, kAllRestart, kSomeForbid };

// Runs the handlers and default actions of all deliverable signals, outside Crane. The turn is not
// held before or after. Returns whether an interrupted blocking call may continue.
Handlers deliver_signals() noexcept;

inline bool signals_due(const dmt::Layout& w) noexcept {
  const dmt::SlotRecord& s = w.slots[self.slot];
  const std::uint64_t pending = s.pending_signals | w.processes[self.process].pending_signals;
  return (pending & ~s.blocked_signals) != 0;
}

}  // namespace crane
