// SPDX-License-Identifier: Apache-2.0
#include "dmt/slices.h"

#include "dmt/scheduler.h"
#include "dmt/sequence/ring.h"

namespace crane::dmt {

void admit_tick_point(Layout& w, const TickPoint& point) noexcept {
  TickPoints& t = w.tick_points;
  std::uint32_t i = 0;
  while (i < t.used && (t.points[i].build != point.build || t.points[i].offset != point.offset))
    ++i;
  if (i == kTickPointsMax) return;
  if (i == t.used) {
    t.points[i] = point;
    __atomic_store_n(&t.used, i + 1, __ATOMIC_RELEASE);  // the leader's node may look meanwhile
  } else {
    t.points[i].weight_ps = point.weight_ps;  // SLICE-2
  }
  __atomic_store_n(&t.changes, t.changes + 1, __ATOMIC_RELEASE);
}

bool add_early_point(Layout& w, const EarlyPoint& point, bool passed) noexcept {
  EarlyPoints& early = w.early_points;
  if (has_early_point(w, point)) return true;
  if (early.used == kEarlyPointsMax) return false;
  if (!passed) early.waiting |= 1U << early.used;
  early.points[early.used++] = point;
  return true;
}

bool has_early_point(const Layout& w, const EarlyPoint& point) noexcept {
  const EarlyPoints& early = w.early_points;
  for (std::uint32_t i = 0; i < early.used; ++i) {
    const EarlyPoint& one = early.points[i];
    if (one.clock == point.clock && one.point.build == point.point.build &&
        one.point.offset == point.point.offset) {
      return true;
    }
  }
  return false;
}

void admit_early_points(Layout& w) noexcept {
  EarlyPoints& early = w.early_points;
  for (std::uint32_t i = 0; i < early.used; ++i) {
    const std::uint32_t bit = 1U << i;
    if ((early.waiting & bit) == 0 || w.scheduler.clock < early.points[i].clock) continue;
    admit_tick_point(w, early.points[i].point);
    early.waiting &= ~bit;
  }
}

void ask_for_next_entry(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  if (s.leading.load(std::memory_order_relaxed) == 0) return;
  if (!Ring(w.header.sequence, reinterpret_cast<std::byte*>(&w)).empty()) return;
  s.grant_low.store(1, std::memory_order_relaxed);
  ring_doorbell(w);
}

void report_slice(Layout& w, std::uint32_t point, std::uint32_t weight_ps,
                  std::int64_t cpu_ns) noexcept {
  SliceReport& report = w.slice_report;
  report.point.store(point, std::memory_order_relaxed);
  report.weight_ps.store(weight_ps, std::memory_order_relaxed);
  report.cpu_ns.store(cpu_ns, std::memory_order_relaxed);
  report.slices.fetch_add(1, std::memory_order_release);
}

}  // namespace crane::dmt
