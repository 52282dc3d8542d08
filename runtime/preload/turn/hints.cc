// SPDX-License-Identifier: Apache-2.0
// Functions by which a server gives hints: hints/crane.h. They are exported by name, not
// interposed.
#include "runtime/preload/turn/soft_barrier.h"

#include <cstddef>

#include "runtime/preload/ground/inside.h"
#include "runtime/preload/turn/blocking.h"
#include "runtime/preload/turn/turn.h"

#define CRANE_HINT extern "C" __attribute__((visibility("default"), used)) void

namespace crane {
namespace {

constexpr std::size_t kSoftBarriers = 16;  // CRANE_SOFT_BARRIERS
// Changed only while holding the turn; fork copies them (soft_barrier.h).
dmt::SoftBarrier soft_barriers[kSoftBarriers];

void release(dmt::Layout& w, dmt::SoftBarrier& l, std::uint64_t object) noexcept {
  l.arrived = 0;
  ++l.round;
  dmt::signal(w, object, dmt::kAll);
}

}  // namespace

void soft_barrier(dmt::SoftBarrier& l, std::uint64_t object) noexcept {
  Turn turn(Op::kSoftBarrier);
  ++l.arrivals;
  if (l.count <= 1) return;
  if (++l.arrived >= l.count) {
    release(turn.w, l, object);
    yield_to_others(turn);
    return;
  }
  const std::uint32_t round = l.round;
  const std::int64_t deadline = turn.now() + std::int64_t{l.timeout_us} * 1000;
  while (l.round == round) {
    const dmt::WakeReason why = turn.wait_at_soft_barrier(object, deadline);
    // The first thread whose time-out passes releases the others.
    if (why == dmt::WakeReason::kTimeout && l.round == round) release(turn.w, l, object);
    if (why == dmt::WakeReason::kInterrupted) (void)turn.interrupted(kRestarts);
  }
  turn.result(static_cast<std::uint64_t>(round));
}

void forget_soft_barriers() noexcept {
  for (dmt::SoftBarrier& l : soft_barriers) l.arrived = 0;
}

}  // namespace crane

CRANE_HINT crane_hint_soft_barrier_init(unsigned which, unsigned count, unsigned timeout_us) {
  if (!crane::is_outside() || which >= crane::kSoftBarriers) return;
  crane::InsideCrane inside;
  crane::Turn turn(crane::Op::kSoftBarrier);
  crane::dmt::SoftBarrier& l = crane::soft_barriers[which];
  if (l.arrived != 0) crane::release(turn.w, l, crane::object_of(&l, false));
  l.count = count;
  l.timeout_us = timeout_us;
}

CRANE_HINT crane_hint_soft_barrier(unsigned which) {
  if (!crane::is_outside() || which >= crane::kSoftBarriers) return;
  crane::InsideCrane inside;
  crane::dmt::SoftBarrier& l = crane::soft_barriers[which];
  crane::soft_barrier(l, crane::object_of(&l, false));
}

CRANE_HINT crane_hint_section(int begins) {
  if (!crane::is_outside()) return;
  crane::InsideCrane inside;
  crane::Turn turn(crane::Op::kSection);  // rejoins the schedule first
  if (begins != 0) turn.detach();
}
