// SPDX-License-Identifier: Apache-2.0
#pragma once
// How calls on the kernel's queues and semaphores wait: the kernel is asked again and again without
// waiting, and the schedule waits in between (rule 3).
//
// Threads: REQUIRES the turn.

#include <cstdint>

#include "runtime/preload/turn/turn.h"

namespace crane {

struct QueueWait {
  int busy;  // what the kernel says when the call would wait
  int late;  // what the caller is told when the deadline passes
  std::int64_t deadline_ns;
  bool may_wait = true;
  bool restarts = kNeverRestarts;
};

// Repeats `attempt` until it says something else than -`busy`, or may not wait.  An object that is
// gone when the wait is over is -EIDRM.
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
