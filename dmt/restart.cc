// SPDX-License-Identifier: Apache-2.0
#include "dmt/restart.h"

#include <algorithm>
#include <iterator>

#include "dmt/base/assert.h"
#include "dmt/base/crc.h"
#include "dmt/processes.h"
#include "dmt/scheduler.h"

namespace crane::dmt {

bool is_over(const Layout& w) noexcept {
  if (!has_turn(w, kNodeSlot)) return false;
  if (w.scheduler.ended) return true;
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    const SlotRecord& s = w.slots[i];
    if (!is_alive(s)) continue;
    const bool away =
        s.state == SlotState::kDetached && s.arrived.load(std::memory_order_seq_cst) == 0;
    if (away || s.parked.load(std::memory_order_seq_cst) != 1) return false;
  }
  return true;
}

CarriedState carried_of(const Layout& w) noexcept {
  const SchedulerState& s = w.scheduler;
  CarriedState c{s.admitted, s.view, s.admissions, s.clock, s.hash, s.now_ns, s.wall_offset_ns, {}};
  std::copy(std::begin(s.seed), std::end(s.seed), c.seed);
  return c;
}

void continue_from(Layout& w, const CarriedState& c) noexcept {
  SchedulerState& s = w.scheduler;
  CRANE_ASSERT(s.clock == 0 && s.admissions == 0 && s.run_queue.head != kNone);
  s.admitted = c.admitted;
  s.view = c.view;
  s.admissions = c.admissions;
  s.clock = c.clock;
  s.hash = c.hash;
  s.now_ns = c.now_ns;
  s.wall_offset_ns = c.wall_offset_ns;
  // Slots and operations, which name the random streams, restart.
  for (std::size_t i = 0; i < std::size(s.seed); ++i) {
    const std::uint64_t mixed[3] = {c.seed[i], value(c.admitted.index), i};
    s.seed[i] = c.seed[i] ^ crc64(mixed, sizeof mixed);
  }
  s.published_clock.store(c.clock, std::memory_order_relaxed);
  s.stalled.store(1, std::memory_order_relaxed);  // its first thread wants turns
  s.applied_index.store(value(c.admitted.index), std::memory_order_release);
}

}  // namespace crane::dmt
