// SPDX-License-Identifier: Apache-2.0
#include "dmt/slices.h"

#include "dmt/node_link.h"
#include "dmt/run_queue.h"
#include "dmt/sequence/ring.h"

namespace crane::dmt {

void admit_tick_point(Layout& w, const TickPoint& point) noexcept {
  TickPoints& t = w.tick_points;
  std::uint32_t i = 0;
  while (i < t.used && !is_same(t.points[i], point)) ++i;
  if (i == kTickPointsMax) return;
  if (i == t.used) {
    t.points[i] = point;
    __atomic_store_n(&t.used, i + 1, __ATOMIC_RELEASE);  // the leader's node may read meanwhile
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
    if (is_same(early.points[i], point)) return true;
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

namespace {

void want_bubble(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  if (s.slice_wanted.load(std::memory_order_relaxed) != 0) return;
  s.slice_wanted.store(1, std::memory_order_relaxed);  // on followers too: they may soon lead
  if (s.leading.load(std::memory_order_relaxed) != 0) ring_doorbell(w);
}

std::uint16_t first_in_run_queue(const Layout& w, bool sliced) noexcept {
  std::uint16_t slot = w.scheduler.run_queue.head;
  while (w.slots[slot].sliced != sliced) slot = w.slots[slot].queue_next;
  return slot;
}

}  // namespace

void end_slice(Layout& w, Slot me) noexcept {
  SlotRecord& slot = w.slots[value(me)];
  if (!slot.sliced) ++w.scheduler.sliced_runnable;
  slot.sliced = true;
  end_grant(w);
}

void grant_slice(Layout& w, EntryType type) noexcept {
  SchedulerState& s = w.scheduler;
  const bool is_bubble = type == EntryType::kBubble;
  if (is_bubble) s.slice_wanted.store(0, std::memory_order_relaxed);
  if (s.slice_grant != SliceGrant::kNone) {
    s.slice_grant = SliceGrant::kFirst;
  } else if (is_bubble && s.sliced_runnable != 0) {
    s.slice_grant = SliceGrant::kLast;
  }
}

void choose_beside_slices(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  if (s.sliced_runnable == 0) return;
  const bool others = s.runnable > s.sliced_runnable;
  if (s.slice_grant == SliceGrant::kFirst || (s.slice_grant == SliceGrant::kLast && !others)) {
    s.slice_grant = SliceGrant::kNone;
    return move_to_front(w, s.run_queue, first_in_run_queue(w, true));
  }
  if (s.slice_grant == SliceGrant::kNone) want_bubble(w);
  if (others) {
    move_to_front(w, s.run_queue, first_in_run_queue(w, false));
  } else {
    s.grant_left = 0;
  }
}

void ask_for_bubble(Layout& w) noexcept {
  if (Ring(w.header.sequence, reinterpret_cast<std::byte*>(&w)).empty()) want_bubble(w);
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
