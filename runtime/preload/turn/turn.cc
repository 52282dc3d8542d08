// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/turn/turn.h"

#include "dmt/base/assert.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/turn/probe.h"
#include "runtime/preload/turn/tick_points.h"

namespace crane {

using dmt::WakeReason;

void block_while_stopped() noexcept {
  while (dmt::is_stopped(*segment, self.process)) {
    dmt::wait(*segment, own_slot(), dmt::continue_object(self.process), dmt::kNoDeadline,
              static_cast<dmt::Operation>(Op::kStopped));
    release_ending_thread();
  }
}

void take_turn() noexcept {
  dmt::get_turn(without_turn(), own_slot());
  release_ending_thread();
  block_while_stopped();
  if (self.home != 0) return_to_processor();
}

WakeReason wait_for_turn(std::uint64_t object, std::int64_t deadline_ns, Op op) noexcept {
  const WakeReason why =
      dmt::wait(*segment, own_slot(), object, deadline_ns, static_cast<dmt::Operation>(op));
  release_ending_thread();
  block_while_stopped();
  ticks::begin_slice(*segment);
  if (!is_parallel()) ticks::after_operation(*segment);
  return why;
}

Turn::Turn(Op op, Point point) noexcept : w(without_turn()), op_(op), point_(point) {
  take();
  if (point_ == kCancellationPoint && cancellation_due()) act_on_cancellation();
}

Turn::~Turn() {
  if (held_) finish();
}

void Turn::finish() noexcept {
  const bool cancelled = self.cancel_asynchronous && cancellation_due();
  const bool due = signals_due(w) || cancelled;
  put();
  if (!due) return;
  const int saved = errno;
  deliver_signals();
  if (cancelled) cancel_self();
  errno = saved;
}

void Turn::take() noexcept {
  take_turn();
  held_ = true;
  // Rule 8a: the time that this thread read between turns has passed for all threads.
  if (self.clock_reads != 0) dmt::observe_time(w, self.clock_ns);
  self.clock_reads = 0;
  note_time(w);
}

void Turn::put() noexcept {
  CRANE_ASSERT(!dmt::is_stopped(w, self.process));  // JOB-1
  held_ = false;
  note_time(w);
  self.watched_events = w.scheduler.watched_events;
  dmt::note_caller(w, reinterpret_cast<std::uintptr_t>(self.caller));
  dmt::put_turn(w, own_slot(), static_cast<dmt::Operation>(op_), result_, yield_);
  if (!is_parallel()) ticks::after_operation(without_turn());
}

void Turn::yield_without_turn() noexcept {
  held_ = false;
  note_time(w);
  self.watched_events = w.scheduler.watched_events;
  dmt::yield_without_turn(w, own_slot(), static_cast<dmt::Operation>(op_));
}

WakeReason Turn::wait(std::uint64_t object, std::int64_t deadline_ns) noexcept {
  // Does not wait if a signal or cancellation became due while the thread was runnable.
  if (signals_due(w) || (point_ == kCancellationPoint && cancellation_due())) {
    return WakeReason::kInterrupted;
  }
  dmt::note_caller(w, reinterpret_cast<std::uintptr_t>(self.caller));
  return wait_for_turn(object, deadline_ns, op_);
}

WakeReason Turn::wait_at_soft_barrier(std::uint64_t object, std::int64_t deadline_ns) noexcept {
  if (signals_due(w)) return WakeReason::kInterrupted;
  const WakeReason why = dmt::wait_at_soft_barrier(w, own_slot(), object, deadline_ns,
                                                   static_cast<dmt::Operation>(op_));
  release_ending_thread();
  block_while_stopped();
  return why;
}

void Turn::detach() noexcept {
  held_ = false;
  note_time(w);
  self.watched_events = w.scheduler.watched_events;
  dmt::detach(w, own_slot(), static_cast<dmt::Operation>(op_));
}

bool Turn::interrupted(bool restarts) noexcept {
  put();
  const Handlers ran = deliver_signals();
  take();
  if (point_ == kCancellationPoint && cancellation_due()) act_on_cancellation();
  return ran == Handlers::kNoneRan || (restarts && ran == Handlers::kAllRestart);
}

void Turn::act_on_cancellation() noexcept {
  result_ = ECANCELED;
  put();
  cancel_self();
}

void cancellation_point(Op op) noexcept { Turn turn(op, Turn::kCancellationPoint); }

void cancel_self() noexcept {
  self.cancel_disabled = true;
  self.entry->cancel_requested = false;
  InsideCrane::set_outside();  // INSIDE-1: the cleanup handlers are the application's
  real::pthread_exit(PTHREAD_CANCELED);
  __builtin_unreachable();
}

}  // namespace crane
