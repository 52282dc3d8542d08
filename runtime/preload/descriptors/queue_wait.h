// SPDX-License-Identifier: Apache-2.0
#pragma once
// Waits of calls on the kernel's queues and semaphores: a call repeats a non-blocking kernel call
// and waits in the schedule between attempts (rule 3).
//
// Threads: REQUIRES the turn.

#include <cstdint>

#include "runtime/preload/turn/turn.h"

namespace crane {

struct QueueWait {
  int busy;  // the kernel's error when the call would wait
  int late;  // the caller's error when the deadline passes
  std::int64_t deadline_ns;
  bool may_wait = true;
  bool restarts = kNeverRestarts;
};

// Repeats `attempt` until it returns something else than -`busy`, or may not wait. -EIDRM: the
// object no longer exists after the wait.
template <typename Attempt>
long until_done(Turn& turn, std::uint64_t object, const QueueWait& wait, Attempt attempt) noexcept {
  bool waited = false;
  for (;;) {
    const long result = attempt();
    if (result == -EINVAL && waited) return -EIDRM;
    if (result != -wait.busy || !wait.may_wait) return result;
    switch (turn.wait(object, wait.deadline_ns)) {
      case dmt::WakeReason::kTimeout:
        return -wait.late;
      case dmt::WakeReason::kInterrupted:
        if (!turn.interrupted(wait.restarts)) return -EINTR;
        break;
      case dmt::WakeReason::kSignalled:
        waited = true;
    }
  }
}

}  // namespace crane
