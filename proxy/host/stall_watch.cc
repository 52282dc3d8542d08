// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/stall_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "proxy/clients/encode.h"
#include "proxy/clients/grants.h"

namespace crane::node {
namespace {

using proxy::kNever;

// Probes of a thread, and of one that was stalled before: some are needed before it is caught.
constexpr std::int64_t kProbeNs = 2'500'000;
constexpr std::int64_t kProbeKnownNs = 60'000;
// Without START admitted: only who is stalled for so long is preempted (STALL-1).
constexpr std::int64_t kLongNs = 2'000'000'000;
// When somebody is said to be stalled.
constexpr std::int64_t kReportNs = 5'000'000'000;
// PASSED entries are at least so far apart, for a server that waits and for one that works.
constexpr std::int64_t kTellIdleNs = 200'000;
constexpr std::int64_t kTellBusyNs = 1'000'000;

bool is_idle(const dmt::Layout& w) noexcept {
  return w.scheduler.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
}

}  // namespace

StallWatch::StallWatch(dmt::Layout& layout, std::uint8_t replicas, StallActions actions)
    : w_(layout),
      on_(layout.header.configuration.stall_rule != dmt::StallRule::kOff),
      alone_(replicas == 1),
      actions_(std::move(actions)) {
  if (on_) dmt::tell_clock(w_, 0);
}

void StallWatch::committed(EntryType type, std::span<const std::byte> body) {
  if (!on_ || closed_) return;
  if (PassedBody passed; type == EntryType::kPassed && proxy::read_body(body, passed)) {
    passed_ = std::max(passed_, passed.clock);
    news_ = true;
  }
  if (PreemptBody preempt; type == EntryType::kPreempt && proxy::read_body(body, preempt)) {
    passed_ = std::max(passed_, preempt.clock);
    if (preempt.clock >= restored_) orders_.push_back(preempt);
    news_ = true;
  }
}

void StallWatch::restore(std::uint64_t passed, std::uint64_t clock) noexcept {
  passed_ = passed_proposed_ = passed;
  restored_ = clock;
  obeyed_ = dmt::orders_obeyed(w_);
}

std::int64_t StallWatch::step(std::int64_t now_ns, Role role) {
  news_ = false;
  if (!role.leads) {  // what was proposed under this leader may be lost: the next time, again
    proposed_clock_ = dmt::kNoClock;
    passed_proposed_ = passed_;
  }
  if (on_) {
    hand_out_orders(role.leads);
    settle_caught(role.leads);
  }
  bring_back(role.leads);
  const std::int64_t due = look(now_ns, role);
  return on_ && role.leads && !alone_ ? std::min(due, tell_progress(now_ns)) : due;
}

void StallWatch::hand_out_orders(bool leads) {
  const std::uint64_t obeyed = dmt::orders_obeyed(w_);
  if (obeyed != obeyed_) {
    obeyed_ = obeyed;
    published_ = false;
    orders_.pop_front();
  }
  // Who is past an order can never obey it: an earlier leader that went on while this was decided.
  if (!orders_.empty() && dmt::clock_now(w_) > orders_.front().clock && !published_) {
    return actions_.diverged("the server is past a turn at which the group preempts a thread");
  }
  PreemptBody caught{};
  const bool held = dmt::is_caught(w_, caught);
  std::uint64_t limit = leads ? dmt::kNoClock : passed_;
  // DMT-W2; the caught slot obeys where it is held, and what follows need not wait for us.
  if (!orders_.empty() && !(leads && held && caught.clock == orders_.front().clock)) {
    limit = std::min(limit, orders_.front().clock);
  }
  if (limit != dmt::told_clock(w_)) dmt::tell_clock(w_, limit);
  if (!orders_.empty() && !published_) {
    published_ = true;
    dmt::order(w_, orders_.front());
  }
}

void StallWatch::settle_caught(bool leads) {
  PreemptBody caught{};
  if (!dmt::is_caught(w_, caught)) return;
  if (!leads) return dmt::let_go(w_);
  if (proposed_clock_ == caught.clock) return;
  if (actions_.propose(EntryType::kPreempt, proxy::bytes_of(caught))) {
    proposed_clock_ = caught.clock;
  }
}

std::int64_t StallWatch::look(std::int64_t now_ns, Role role) {
  const dmt::Glimpse now = dmt::glimpse(w_);
  if (now.slot == dmt::kNone) {
    standing_ = {};
    return kNever;
  }
  if (now.in_operation || now.slot != standing_.slot || now.clock != standing_.clock) {
    standing_ = {now.slot, now.clock, now_ns};
    probed_at_ns_ = now_ns;
    reported_ = false;
  }
  const std::int64_t lasts = now_ns - standing_.since_ns;
  if (lasts >= kReportNs && !reported_) {
    reported_ = true;
    spdlog::warn(
        "slot {} has had the turn at clock {} for {} s without an operation: a long computation, "
        "or a loop that waits for another thread (then the group needs --spins)",
        now.slot, now.clock, lasts / 1'000'000'000);
  }
  if (!on_) return kNever;
  const bool ordered = published_ && orders_.front().clock == now.clock;
  // STALL-1.  Who is behind what an earlier leader has passed may not decide what that one did not.
  const bool stood_there = lasts >= kLongNs && now.clock >= passed_;
  const bool may_catch = role.leads && (role.decides || stood_there);
  if (!ordered && !role.leads) return kNever;
  const bool computes = w_.header.configuration.stall_rule == dmt::StallRule::kComputations;
  const std::int64_t period = ordered     ? kProbeKnownNs
                              : computes  ? dmt::kComputationNs
                              : now.known ? kProbeKnownNs
                                          : kProbeNs;
  if (now_ns - probed_at_ns_ >= period) {
    probed_at_ns_ = now_ns;
    PreemptBody caught{};
    const bool wanted = ordered || (may_catch && now.helps && !dmt::is_caught(w_, caught));
    if (wanted && !now.in_operation) actions_.probe(w_.slots[now.slot].process);
  }
  return probed_at_ns_ + period;
}

// A new leader asks for all who are there: what the one before proposed may be lost, and an ATTACH
// that comes twice has no effect.
void StallWatch::bring_back(bool leads) {
  const std::uint32_t arrivals = w_.scheduler.arrivals.load(std::memory_order_acquire);
  const bool fresh = leads && !led_;
  led_ = leads;
  if (arrivals == seen_arrivals_ && !fresh) return;
  seen_arrivals_ = arrivals;
  if (!leads) return;
  if (fresh) attach_proposed_.clear();
  std::erase_if(attach_proposed_, [this](const AttachBody& a) {
    return w_.slots[a.slot].arrived.load(std::memory_order_relaxed) == 0;
  });
  for (std::uint32_t slot = 1; slot < __atomic_load_n(&w_.scheduler.slots_used, __ATOMIC_RELAXED);
       ++slot) {
    if (w_.slots[slot].arrived.load(std::memory_order_acquire) == 0) continue;
    const AttachBody body{slot, w_.slots[slot].detachments.load(std::memory_order_relaxed)};
    const auto is_same = [&body](const AttachBody& a) {
      return a.slot == body.slot && a.number == body.number;
    };
    if (std::any_of(attach_proposed_.begin(), attach_proposed_.end(), is_same)) continue;
    if (actions_.propose(EntryType::kAttach, proxy::bytes_of(body))) {
      attach_proposed_.push_back(body);
    } else {
      led_ = false;  // the next step tries again
    }
  }
}

std::int64_t StallWatch::tell_progress(std::int64_t now_ns) {
  const bool idle = is_idle(w_);
  const std::uint64_t clock = dmt::clock_now(w_);
  passed_proposed_ = std::max(passed_proposed_, passed_);
  if (clock <= passed_proposed_) return kNever;
  const std::int64_t due = told_at_ns_ + (idle ? kTellIdleNs : kTellBusyNs);
  if (now_ns < due) return due;
  if (actions_.propose(EntryType::kPassed, proxy::bytes_of(PassedBody{clock}))) {
    passed_proposed_ = clock;
    told_at_ns_ = now_ns;
  }
  return kNever;
}

}  // namespace crane::node
