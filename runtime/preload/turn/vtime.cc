// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/turn/vtime.h"

#include "dmt/tuning.h"
#include "runtime/preload/turn/turn.h"

namespace crane {

std::int64_t virtual_now() noexcept {
  if (++self.clock_reads >= dmt::kClockReadsPerTurn) {
    Turn turn(Op::clock_gettime);
    turn.end_grant();
  }
  return ++self.clock_ns;
}

std::int64_t virtual_wall_now() noexcept {
  const std::int64_t now = virtual_now();
  return saturating_add(now, self.wall_offset_ns);
}

std::int64_t deadline_at(const dmt::Layout& w, clockid_t clock, const struct timespec& t) noexcept {
  std::int64_t at = to_ns(t);
  if (clock == CLOCK_REALTIME || clock == CLOCK_TAI || clock == CLOCK_REALTIME_ALARM) {
    at = saturating_add(at, -w.scheduler.wall_offset_ns);
  }
  return at == dmt::kNoDeadline ? dmt::kNoDeadline - 1 : at;
}

}  // namespace crane
