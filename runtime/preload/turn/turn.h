// SPDX-License-Identifier: Apache-2.0
#pragma once
// One operation of the schedule, from get_turn to put_turn, and what is due at its end: virtual
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
// The destructor puts the turn and then, outside of Crane, runs the handlers of signals that became
// deliverable; errno is kept over it.  A handler may longjmp or end the thread: nothing may be held
// when the Turn goes, and a Turn must be the last thing that ends in its scope.
//
// Threads: the own thread only.  In a thread without a slot no Turn may be made (THREAD-1).

#include <cerrno>
#include <cstdint>

#include "dmt/job_control.h"
#include "dmt/scheduler.h"
#include "dmt/slices.h"
#include "runtime/preload/ground/operations.h"
#include "runtime/preload/self/thread.h"

namespace crane {

// As SA_RESTART: the call may go on after a handler that asked for it.
inline constexpr bool kRestarts = true;
inline constexpr bool kNeverRestarts = false;

// libc's way to fail.
inline int fail(int error) noexcept {
  errno = error;
  return -1;
}

// dmt::get_turn and dmt::wait for the calling thread: every return with the turn is one of these.
CRANE_TAKES_TURN void take_turn() noexcept;
CRANE_REQUIRES_TURN dmt::WakeReason wait_for_turn(std::uint64_t object, std::int64_t deadline_ns,
                                                  Op op) noexcept;
// While the process is stopped its threads stand here, at a turn (JOB-1).  REQUIRES the turn.
CRANE_REQUIRES_TURN void block_while_stopped() noexcept;

// For clang's analysis a Turn holds the turn for all its life, also where put() is followed by
// take(): functions that have one from their caller need no word of it.
class CRANE_HOLDS_TURN Turn {
 public:
  enum Point : std::uint8_t { kNoPoint, kCancellationPoint };

  CRANE_TAKES_TURN explicit Turn(Op op, Point point = kNoPoint) noexcept;
  CRANE_PUTS_TURN ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  dmt::Layout& w;

  // What the schedule hash folds: the same on every replica, never an address or an inode.
  void result(std::uint64_t value) noexcept { result_ = value; }
  void result(std::int64_t value) noexcept { result_ = static_cast<std::uint64_t>(value); }
  void result(int value) noexcept { result_ = static_cast<std::uint64_t>(value); }
  // What the operation is about, where neither wait() nor a signal says it; for messages only.
  void about(std::uint64_t object) noexcept { dmt::note_object(w, object); }
  // Ends the quantum: the others go first (rule 23).
  void yield() noexcept { yield_ = true; }

  // Uses up the grant as well: time and input come next (dmt::end_grant).
  void end_grant() noexcept {
    yield();
    dmt::end_grant(w);
  }

  // .. and the slice of this thread (dmt/slices.h).
  void end_slice() noexcept {
    yield();
    dmt::end_slice(w, own_slot());
  }

  // Blocks; holds the turn again on return.  `deadline_ns` in virtual monotonic time.
  CRANE_TURN_UNCHECKED dmt::WakeReason wait(std::uint64_t object,
                                            std::int64_t deadline_ns = dmt::kNoDeadline) noexcept;

  // The same at a soft barrier (rule 13).
  CRANE_TURN_UNCHECKED dmt::WakeReason wait_at_soft_barrier(std::uint64_t object,
                                                            std::int64_t deadline_ns) noexcept;

  // Ends the operation and leaves the schedule by agreement, until this thread's next operation
  // (dmt/scheduler.h).  Signals wait until then.
  CRANE_TURN_UNCHECKED void detach() noexcept;

  // After wait() said kInterrupted: runs the handlers, acts on a cancellation (then it does not
  // return: watches and the like must be gone).  Holds the turn on return; true: go on waiting,
  // false: return EINTR.
  CRANE_TURN_UNCHECKED bool interrupted(bool restarts) noexcept;

  // Puts the turn early, without the deliveries of the end; and takes it again.
  CRANE_TURN_UNCHECKED void put() noexcept;
  CRANE_TURN_UNCHECKED void take() noexcept;

  // Puts the turn and goes to the tail of the run queue, without the turn in serial mode too: for a
  // call into the kernel that no other thread can observe, after which take() is due.
  CRANE_TURN_UNCHECKED void yield_without_turn() noexcept;

  // Ends the operation here for a thread or process that does not go on: no delivery.
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

// A cancellation point that blocks nothing.
void cancellation_point(Op op) noexcept;

// Ends this thread as cancelled: runs the cleanup handlers, outside of Crane.
[[noreturn]] void cancel_self() noexcept;

// --- wrap_signal.cc  -----------------------------------------------------------------------------

enum class Handlers : std::uint8_t { kNoneRan, kAllRestart, kSomeForbid };

// Runs the handlers and default actions of all deliverable signals, outside of Crane.  The turn is
// not held before or after.  Says whether a blocked call that was interrupted may go on.
Handlers deliver_signals() noexcept;

inline bool signals_due(const dmt::Layout& w) noexcept {
  const dmt::SlotRecord& s = w.slots[self.slot];
  const std::uint64_t pending = s.pending_signals | w.processes[self.process].pending_signals;
  return (pending & ~s.blocked_signals) != 0;
}

}  // namespace crane
