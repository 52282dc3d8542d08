// SPDX-License-Identifier: Apache-2.0
#include "dmt/timers.h"

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/node_link.h"

namespace crane::dmt {
namespace {

bool earlier(const Layout& w, std::uint16_t a, std::uint16_t b) noexcept {
  const TimerRecord& x = w.timers[a];
  const TimerRecord& y = w.timers[b];
  return x.deadline_ns != y.deadline_ns ? x.deadline_ns < y.deadline_ns : x.number < y.number;
}

void place(Layout& w, std::uint32_t position, std::uint16_t timer) noexcept {
  w.timer_heap[position] = timer;
  w.timers[timer].heap = static_cast<std::uint16_t>(position + 1);
}

void sift_up(Layout& w, std::uint32_t position) noexcept {
  const std::uint16_t timer = w.timer_heap[position];
  while (position > 0) {
    const std::uint32_t parent = (position - 1) / 2;
    if (!earlier(w, timer, w.timer_heap[parent])) break;
    place(w, position, w.timer_heap[parent]);
    position = parent;
  }
  place(w, position, timer);
}

void sift_down(Layout& w, std::uint32_t position) noexcept {
  const std::uint16_t timer = w.timer_heap[position];
  const std::uint32_t count = w.scheduler.timers_armed;
  for (;;) {
    std::uint32_t child = 2 * position + 1;
    if (child >= count) break;
    if (child + 1 < count && earlier(w, w.timer_heap[child + 1], w.timer_heap[child])) ++child;
    if (!earlier(w, w.timer_heap[child], timer)) break;
    place(w, position, w.timer_heap[child]);
    position = child;
  }
  place(w, position, timer);
}

void publish_next(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  const std::int64_t next =
      s.timers_armed == 0 ? kNoDeadline : w.timers[w.timer_heap[0]].deadline_ns;
  s.next_deadline.store(next, std::memory_order_relaxed);
}

constinit Bound timers_bound{kTimersMax - kFirstSharedTimer, "timers of all processes",
                             "timerfd_create (ENFILE) and timer_create (EAGAIN) fail"};

// Each process has its own timer, because alarm() cannot return an error.
std::uint16_t create_timer_of_process(Layout& w, std::uint32_t process) noexcept {
  const auto timer = static_cast<std::uint16_t>(kSlotsMax + process);
  CRANE_ASSERT(process < kProcessesMax && w.timers[timer].kind != TimerKind::kProcess);
  w.timers[timer] = {TimerKind::kProcess, 0, process, 0, 0};
  return timer;
}

}  // namespace

void initialise_timers(Layout& w) noexcept {
  for (std::uint16_t i = 1; i < kSlotsMax; ++i) w.timers[i] = {TimerKind::kSlot, 0, i, 0, 0};
  for (std::uint32_t i = kFirstSharedTimer; i < kTimersMax; ++i) {
    w.timers[i].owner = i + 1 < kTimersMax ? i + 1 : kNone;
  }
  w.scheduler.free_timer = kFirstSharedTimer;
}

std::uint16_t create_timer(Layout& w, TimerKind kind, std::uint32_t owner) noexcept {
  if (kind == TimerKind::kProcess) return create_timer_of_process(w, owner);
  const std::uint16_t timer = w.scheduler.free_timer;
  if (timer == kNone) {
    timers_bound.count_refusal();
    return kNone;
  }
  TimerRecord& t = w.timers[timer];
  w.scheduler.free_timer = static_cast<std::uint16_t>(t.owner);
  t = {kind, 0, owner, 0, 0};
  return timer;
}

void destroy_timer(Layout& w, std::uint16_t timer) noexcept {
  CRANE_ASSERT(timer >= kSlotsMax && timer < kTimersMax);
  disarm_timer(w, timer);
  w.timers[timer].kind = TimerKind::kFree;
  if (timer < kFirstSharedTimer) return;
  w.timers[timer].owner = w.scheduler.free_timer;
  w.scheduler.free_timer = timer;
}

void arm_timer(Layout& w, std::uint16_t timer, std::int64_t deadline_ns) noexcept {
  disarm_timer(w, timer);
  SchedulerState& s = w.scheduler;
  w.timers[timer].deadline_ns = deadline_ns;
  w.timers[timer].number = ++s.wait_number;
  const std::uint32_t last = s.timers_armed++;
  w.timer_heap[last] = timer;
  sift_up(w, last);
  publish_next(w);
}

void disarm_timer(Layout& w, std::uint16_t timer) noexcept {
  TimerRecord& t = w.timers[timer];
  if (t.heap == 0) return;
  const std::uint32_t position = t.heap - 1u;
  t.heap = 0;
  const std::uint32_t last = --w.scheduler.timers_armed;
  if (position != last) {
    const std::uint16_t moved = w.timer_heap[last];
    place(w, position, moved);
    sift_up(w, position);
    sift_down(w, w.timers[moved].heap - 1u);
  }
  publish_next(w);
}

}  // namespace crane::dmt
