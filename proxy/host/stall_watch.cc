// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/stall_watch.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "dmt/tuning.h"
#include "proxy/clients/encode.h"
#include "proxy/host/proposals.h"
#include "proxy/host/replica_server.h"

namespace crane::node {

namespace stalls = replica::stalls;
static_assert(stalls::kNoClock == dmt::kNoClock);

namespace {

stalls::Options options_of(const dmt::Layout& w, std::uint8_t replicas) {
  const dmt::StallRule rule = w.header.configuration.stall_rule;
  stalls::Options options;
  options.on = rule != dmt::StallRule::kOff;
  options.alone = replicas == 1;
  options.computation_ns = rule == dmt::StallRule::kComputations ? dmt::kComputationNs : 0;
  return options;
}

constexpr EntryType type_of(const PreemptBody&) { return EntryType::kPreempt; }
constexpr EntryType type_of(const PassedBody&) { return EntryType::kPassed; }
constexpr EntryType type_of(const AttachBody&) { return EntryType::kAttach; }

}  // namespace

StallWatch::StallWatch(dmt::Layout& layout, std::uint8_t replicas, ReplicaServer& server,
                       Proposals& proposals)
    : w_(layout), server_(server), proposals_(proposals), machine_(options_of(layout, replicas)) {
  if (options_of(layout, replicas).on) dmt::set_leader_clock_limit(w_, 0);
}

void StallWatch::committed(EntryType type, std::span<const std::byte> body) {
  if (PassedBody passed; type == EntryType::kPassed && proxy::read_body(body, passed)) {
    step(stalls::Passed{passed.clock}, now_ns_);
  }
  if (PreemptBody preempt; type == EntryType::kPreempt && proxy::read_body(body, preempt)) {
    step(stalls::Preempt{preempt}, now_ns_);
  }
}

void StallWatch::restore(std::uint64_t passed, std::uint64_t clock) {
  step(stalls::Restored{passed, clock, dmt::preempt_requests_obeyed(w_)}, now_ns_);
}

StallWatch::Next StallWatch::step(std::int64_t now_ns, Role role) {
  step(look(role), now_ns);
  return {machine_.deadline_ns(), std::exchange(diverged_, nullptr)};
}

stalls::Tick StallWatch::look(Role role) {
  stalls::Tick tick;
  tick.leads = role.leads;
  tick.decides = role.decides;
  tick.obeyed = dmt::preempt_requests_obeyed(w_);
  tick.idle = w_.scheduler.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  tick.clock = dmt::clock_now(w_);
  tick.leader_clock_limit = dmt::leader_clock_limit(w_);
  if (PreemptBody held{}; dmt::has_held_thread(w_, held)) tick.held = held;
  const dmt::TurnSnapshot now = dmt::glimpse(w_);
  if (now.slot != dmt::kNone) {
    tick.holder = {now.slot, now.clock, now.in_operation, now.helps, now.known};
  }
  tick.arrivals = w_.scheduler.arrivals.load(std::memory_order_acquire);
  return tick;
}

void StallWatch::step(const stalls::Event& event, std::int64_t now_ns) {
  now_ns_ = now_ns;
  machine_.step(event, now_ns);
  loop_.run(machine_, [this](auto& action) { carry_out(action); });
}

void StallWatch::carry_out(const stalls::Probe& probe) {
  server_.monitor().probe(w_.slots[probe.slot].process);
}

void StallWatch::carry_out(const stalls::Propose& proposal) {
  const bool ok = std::visit(
      [this](const auto& body) {
        const EntryType type = type_of(body);
        const GrantTurns grant = type == EntryType::kAttach ? proposals_.input_grant() : 0;
        return proposals_.propose(type, grant, proxy::bytes_of(body), now_ns_).ok();
      },
      proposal.entry);
  step(stalls::Proposed{proposal.entry, ok}, now_ns_);
}

void StallWatch::carry_out(const stalls::LookForArrived&) {
  arrived_.clear();
  const std::uint32_t used = __atomic_load_n(&w_.scheduler.slots_used, __ATOMIC_RELAXED);
  for (std::uint32_t slot = 1; slot < used; ++slot) {
    if (w_.slots[slot].arrived.load(std::memory_order_acquire) == 0) continue;
    arrived_.push_back({slot, w_.slots[slot].detachments.load(std::memory_order_relaxed)});
  }
  step(stalls::Arrived{arrived_}, now_ns_);
}

void StallWatch::carry_out(const stalls::Warn& warning) { spdlog::warn("{}", warning.text); }

}  // namespace crane::node
