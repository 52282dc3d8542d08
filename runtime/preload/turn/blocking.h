// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops of "try, else wait" shared by the wrappers of synchronisation objects.
//
// Threads: the caller holds the turn.

#include <cerrno>

#include "runtime/preload/turn/fairness.h"
#include "runtime/preload/turn/turn.h"
#include "runtime/preload/turn/vtime.h"

namespace crane {

// Waits once. Handlers of interrupting signals run in this call, and then the caller tries again.
// Returns false when the deadline has passed.
inline bool block(Turn& turn, std::uint64_t object,
                  std::int64_t deadline_ns = dmt::kNoDeadline) noexcept {
  const dmt::WakeReason why = turn.wait(object, deadline_ns);
  if (why == dmt::WakeReason::kInterrupted) (void)turn.interrupted(kRestarts);
  return why != dmt::WakeReason::kTimeout;
}

// Repeats `attempt` (an error number; EBUSY = not now) until it returns something else.
template <typename Attempt>
int until_free(Turn& turn, std::uint64_t object, Attempt attempt) noexcept {
  int error;
  int failures = 0;
  while ((error = attempt()) == EBUSY) {
    note_failure(object, failures);
    block(turn, object);
  }
  if (failures >= kPatience) end_reservation(turn.w, object, false);
  turn.about(object);
  return error;
}

// Blocks until an absolute time of `clock`; returns EINVAL for a bad time only when it would
// block.
template <typename Attempt>
int until_free_or(Turn& turn, std::uint64_t object, clockid_t clock, const struct timespec* time,
                  Attempt attempt) noexcept {
  if (!is_futex_clock(clock)) return EINVAL;
  int error = attempt();
  if (error != EBUSY) return error;
  if (!is_valid(*time)) return EINVAL;
  const std::int64_t deadline = deadline_at(turn.w, clock, *time);
  int failures = 0;
  while (error == EBUSY) {
    note_failure(object, failures);
    if (!block(turn, object, deadline)) {
      error = ETIMEDOUT;
    } else {
      error = attempt();
    }
  }
  if (failures >= kPatience) end_reservation(turn.w, object, error == ETIMEDOUT);
  turn.about(object);
  return error;
}

// Called when a poll that did not wait found nothing. Other threads run first (rule 11); after many
// such polls in a row, input is admitted.
inline constexpr std::uint32_t kEmptyPollsPerGrant = 16;
inline void note_empty_poll(Turn& turn) noexcept {
  turn.yield();
  if (++self.empty_polls % kEmptyPollsPerGrant == 0) turn.end_grant();
}

// In parallel mode, other threads run before a thread that may compute for long (rule 23).
inline void yield_to_others(Turn& turn) noexcept {
  if (is_parallel()) turn.yield();
}

// In serial mode, other threads run first if the call woke no thread and threads wait in loops:
// such a loop may look for work by an unlock that wakes no thread (rule 11).
inline void yield_if_none_woken(Turn& turn, std::uint32_t woken) noexcept {
  const bool spins = turn.w.header.configuration.stall_rule == dmt::StallRule::kSpins;
  if (woken == 0 && spins) turn.yield();
}

}  // namespace crane
