// SPDX-License-Identifier: Apache-2.0
#include "dmt/stall.h"

#include <algorithm>
#include <bit>

#include "dmt/base/assert.h"
#include "dmt/base/futex.h"
#include "dmt/node_link.h"
#include "dmt/scheduler.h"
#include "dmt/sequence/ring.h"

namespace crane::dmt {
namespace {

bool is_known_site(const SchedulerState& s, std::uint64_t instruction) noexcept {
  for (std::uint32_t i = 0; i < s.stall_sites; ++i) {
    if (is_within(s.stall_site[i], instruction)) return true;
  }
  return false;
}

// The number of detached threads that compute.
std::uint32_t computing_detached(const Layout& w) noexcept {
  std::uint32_t detached_count = 0;
  for (std::uint32_t i = 1; i < w.scheduler.slots_used; ++i) {
    const SlotRecord& s = w.slots[i];
    if (s.state == SlotState::kDetached && s.arrived.load(std::memory_order_relaxed) == 0)
      ++detached_count;
  }
  return detached_count;
}

// Decides on the leader whether the thread may be detached.  It may if no other thread can see it
// compute: it is the only thread of a process that shares no memory, or the group declares that its
// programs do not race while they compute.  At most one thread per processor: more would gain
// nothing and keep the node from the processors.
bool may_detach(const Layout& w, Slot me) noexcept {
  const Configuration& c = w.header.configuration;
  if (c.stall_rule != StallRule::kComputations) return false;
  const auto processors = static_cast<std::uint32_t>(std::popcount(c.processors));
  if (processors != 0 && computing_detached(w) >= processors) return false;
  if ((c.detached_calls & kDetachAnyComputation) != 0) return true;
  const ProcessRecord& p = w.processes[w.slots[value(me)].process];
  return p.slots == 1 && !p.shares_memory;
}

void begin(ProbeMemory& m, std::uint64_t clock, const Sample& sample) noexcept {
  const ProbeMemory last = m;
  m = {.clock = clock,
       .ran_ns = 0,
       .awake_ns = sample.physical_ns,
       .low = sample.instruction,
       .high = sample.instruction,
       .released_cpu_ns = last.released_cpu_ns,
       .released_sleeps = last.released_sleeps,
       .registers = last.registers};
}

// Since the last probe.  A thread that no probe released has not slept, however long ago that was.
bool has_slept(const Sample& sample, const ProbeMemory& m) noexcept {
  return sample.sleeps != m.released_sleeps;
}
bool has_run(const Sample& sample, const ProbeMemory& m) noexcept {
  return sample.cpu_ns - m.released_cpu_ns >= kLookNs;
}

// The value of this probe: whether the thread has looked at its condition since the last probe.
// The kernel looks before it lets a thread sleep.
std::uint32_t worth(const Sample& sample, const ProbeMemory& m) noexcept {
  if (has_slept(sample, m)) return kAlikeLooks;
  if (!has_run(sample, m)) return 0;
  return sample.registers != m.registers ? kAlikeLooks : 1;
}

// Adds one look at a thread that is still in the same place.  Returns true if it is stalled.
bool is_stalled(const SchedulerState& s, const Sample& sample, ProbeMemory& m,
                bool requested) noexcept {
  const bool first = m.clock != s.clock || m.samples == 0;
  if (first) begin(m, s.clock, sample);
  const bool at_site = is_known_site(s, sample.instruction) ||
                       (requested && is_within(s.preempt_request_site, sample.instruction));
  if (!first) m.ran_ns += sample.cpu_ns - m.released_cpu_ns;
  if (has_run(sample, m) && !has_slept(sample, m)) m.awake_ns = sample.physical_ns;
  m.low = std::min(m.low, sample.instruction);
  m.high = std::max(m.high, sample.instruction);
  // After a computation the search starts again here, so a stall that follows it is found.
  const std::uint32_t looks = at_site && !first ? m.looks + worth(sample, m) : 0;
  if (m.high - m.low > kSpinBytes) begin(m, s.clock, sample);
  m.looks = looks;
  m.registers = sample.registers;
  ++m.samples;
  if (m.looks >= kSiteLooks * kAlikeLooks) return true;
  if (m.samples < kSpinSamples) return false;
  if (m.ran_ns >= kSpinFirstNs) return true;
  return has_slept(sample, m) && sample.physical_ns - m.awake_ns >= kAsleepNs;
}

// Holds the thread until every replica does the same, or until this replica no longer leads.
void hold_thread(Layout& w, Slot me, const ProbeMemory& memory, bool leaves) noexcept {
  SchedulerState& s = w.scheduler;
  SlotRecord& slot = w.slots[value(me)];
  CRANE_ASSERT(s.held_thread.load() == HeldThread::kNoThread);  // DMT-W3
  s.held_thread_preempt = {s.clock,   memory.low,      memory.high,
                           value(me), slot.generation, leaves ? 1u : 0u};
  s.held_thread.store(HeldThread::kHeld, std::memory_order_seq_cst);
  ring_doorbell(w);
  // Dekker with request_preemption() and release_held_thread().
  for (;;) {
    slot.parked.store(1, std::memory_order_seq_cst);
    if (has_preempt_request(w, me) ||
        s.held_thread.load(std::memory_order_seq_cst) == HeldThread::kReleased)
      break;
    futex_wait(&slot.parked, 1);
  }
  slot.parked.store(0, std::memory_order_relaxed);
  if (s.fenced.load(std::memory_order_relaxed) != 0) stop_here(w);
  s.held_thread.store(HeldThread::kNoThread, std::memory_order_seq_cst);
}

}  // namespace

bool probed(Layout& w, Slot me, const Sample& sample, ProbeMemory& memory) noexcept {
  SchedulerState& s = w.scheduler;
  if (w.slots[value(me)].in_operation.load(std::memory_order_relaxed) != 0) return false;
  if (!has_turn(w, me)) return false;
  if (is_past_preempt_request(w, me)) fence_past_preempt_request(w);
  const bool requested = has_preempt_request(w, me);
  const bool may_decide =
      s.leading.load(std::memory_order_relaxed) != 0 && s.clock < leader_clock_limit(w);
  if (!requested && !may_decide) return false;
  // A thread can be detached at any instruction; it continues to compute.  The node has waited long
  // enough.
  const bool leaves = requested ? s.preempt_request_leaves != 0 : may_detach(w, me);
  const bool spins = w.header.configuration.stall_rule == StallRule::kSpins;
  if (!leaves && !(spins && is_stalled(s, sample, memory, requested))) return false;
  if (!requested) hold_thread(w, me, memory, leaves);
  memory = ProbeMemory{};
  if (!has_preempt_request(w, me)) return false;  // released
  yield_turn(w, me);
  return true;
}

TurnSnapshot glimpse(Layout& w) noexcept {
  const SchedulerState& s = w.scheduler;
  const std::uint32_t holder = s.holder.load(std::memory_order_acquire);
  if (holder == value(kNodeSlot) || holder >= kSlotsMax) return {kNone, 0, false, false, false};
  const SlotRecord& slot = w.slots[holder];
  const bool waiting = !Ring(w.header.sequence, reinterpret_cast<std::byte*>(&w)).empty();
  return {static_cast<std::uint16_t>(holder), __atomic_load_n(&s.clock, __ATOMIC_RELAXED),
          slot.in_operation.load(std::memory_order_relaxed) != 0,
          waiting || __atomic_load_n(&s.runnable, __ATOMIC_RELAXED) > 1,
          slot.preempted.load(std::memory_order_relaxed) != 0};
}

bool has_held_thread(const Layout& w, PreemptBody& body) noexcept {
  if (w.scheduler.held_thread.load(std::memory_order_acquire) != HeldThread::kHeld) return false;
  body = w.scheduler.held_thread_preempt;
  return true;
}

void release_held_thread(Layout& w) noexcept {
  HeldThread held = HeldThread::kHeld;
  if (w.scheduler.held_thread.compare_exchange_strong(held, HeldThread::kReleased)) wake_holder(w);
}

}  // namespace crane::dmt
