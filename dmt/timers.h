// SPDX-License-Identifier: Apache-2.0
#pragma once
// Deadlines in virtual time: a binary heap of timers in the segment, ordered by (deadline, order of
// arming), so that all replicas fire them in one order (rule 8e).  admission.h fires them.
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// Timers other than the slots' deadlines: timerfd, alarm.  Returns kNone if none is free.  A
// process always has its own timer (TimerKind::kProcess; create it again only after destroying it).
inline constexpr std::uint16_t kFirstSharedTimer = kSlotsMax + kProcessesMax;
static_assert(kFirstSharedTimer + kPosixTimersMax < kTimersMax);
void initialise_timers(Layout& w) noexcept;
std::uint16_t create_timer(Layout& w, TimerKind kind, std::uint32_t owner) noexcept;
void destroy_timer(Layout& w, std::uint16_t timer) noexcept;
void arm_timer(Layout& w, std::uint16_t timer, std::int64_t deadline_ns) noexcept;
void disarm_timer(Layout& w, std::uint16_t timer) noexcept;

// The turn holder has read virtual time `ns` between turns.  The replica's clock never goes back
// before a time that one of its threads has read (rule 8a).
inline void observe_time(Layout& w, std::int64_t ns) noexcept {
  if (ns > w.scheduler.now_ns) w.scheduler.now_ns = ns;
}

}  // namespace crane::dmt
