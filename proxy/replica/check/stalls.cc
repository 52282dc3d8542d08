// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/check/stalls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace crane::replica {

using namespace stalls;

namespace {

// Intervals between probes of a thread, and of one that was stalled before.  Several probes may be
// needed to hold it.
constexpr std::int64_t kProbeNs = 2'500'000;
constexpr std::int64_t kProbeKnownNs = 60'000;
// If START is not admitted, only a thread that is stalled for this long is preempted (STALL-1).
constexpr std::int64_t kLongNs = 2'000'000'000;
// When a stalled thread is reported.
constexpr std::int64_t kReportNs = 5'000'000'000;
// The least distance of PASSED entries, for a server that waits and for one that works.
constexpr std::int64_t kReportIdleNs = 200'000;
constexpr std::int64_t kReportBusyNs = 1'000'000;

}  // namespace

void Stalls::step(const Event& event, std::int64_t now_ns) {
  now_ns_ = now_ns;
  std::visit([this](const auto& e) { on(e); }, event);
}

bool Stalls::take_actions(ActionList& out) {
  out.clear();
  std::swap(out, actions_);
  return !out.empty();
}

// --- the log ------------------------------------------------------------------------------------

void Stalls::on(const Passed& entry) {
  if (!options_.on || closed_) return;
  passed_ = std::max(passed_, entry.clock);
  news_ = true;
}

void Stalls::on(const Preempt& entry) {
  if (!options_.on || closed_) return;
  passed_ = std::max(passed_, entry.body.clock);
  if (entry.body.clock >= restored_) orders_.push_back(entry.body);
  news_ = true;
}

void Stalls::on(const Restored& restored) {
  passed_ = passed_proposed_ = restored.passed;
  restored_ = restored.clock;
  obeyed_ = restored.obeyed;
}

// --- the server ---------------------------------------------------------------------------------

void Stalls::on(const Tick& tick) {
  news_ = false;
  if (!tick.leads) {  // proposals of this reign may be lost: propose again in the next
    proposed_clock_ = kNoClock;
    passed_proposed_ = passed_;
  }
  if (options_.on) {
    hand_out_orders(tick);
    settle_held(tick);
  }
  bring_back(tick);
  due_ns_ = look(tick);
  if (options_.on && tick.leads && !options_.alone) {
    due_ns_ = std::min(due_ns_, report_progress(tick));
  }
}

void Stalls::hand_out_orders(const Tick& tick) {
  if (tick.obeyed != obeyed_) {
    obeyed_ = tick.obeyed;
    published_ = false;
    orders_.pop_front();
  }
  // A server that is past an order can never obey it: it belonged to an earlier leader, and
  // continued while the order was being decided.
  if (!orders_.empty() && tick.clock > orders_.front().clock && !published_) {
    actions_.emplace_back(
        Diverged{"the server is past a turn at which the group preempts a thread"});
    return;
  }
  std::uint64_t limit = tick.leads ? kNoClock : passed_;
  // DMT-W2.  The held thread obeys where it is held, and later operations need not wait.
  const bool obeys_held =
      tick.leads && tick.held && !orders_.empty() && tick.held->clock == orders_.front().clock;
  if (!orders_.empty() && !obeys_held) limit = std::min(limit, orders_.front().clock);
  if (limit != tick.leader_clock_limit) actions_.emplace_back(SetLeaderClockLimit{limit});
  if (!orders_.empty() && !published_) {
    published_ = true;
    actions_.emplace_back(RequestPreemption{orders_.front()});
  }
}

void Stalls::settle_held(const Tick& tick) {
  if (!tick.held) return;
  if (!tick.leads) {
    actions_.emplace_back(ReleaseHeldThread{});
  } else if (proposed_clock_ != tick.held->clock) {
    actions_.emplace_back(Propose{*tick.held});
  }
}

std::int64_t Stalls::look(const Tick& tick) {
  if (!tick.holder) {
    stalled_thread_ = {};
    return kNever;
  }
  const Holder& now = *tick.holder;
  if (now.in_operation || now.slot != stalled_thread_.slot || now.clock != stalled_thread_.clock) {
    stalled_thread_ = {now.slot, now.clock, now_ns_};
    probed_at_ns_ = now_ns_;
    reported_ = false;
  }
  const std::int64_t lasts = now_ns_ - stalled_thread_.since_ns;
  if (lasts >= kReportNs && !reported_) {
    reported_ = true;
    actions_.emplace_back(Warn{fmt::format(
        "slot {} has had the turn at clock {} for {} s without an operation: a long computation, "
        "or a loop that waits for another thread (where no time slice ends, it needs --spins)",
        now.slot, now.clock, lasts / 1'000'000'000)});
  }
  if (!options_.on) return kNever;
  const bool requested = published_ && orders_.front().clock == now.clock;
  // STALL-1.  A server that is behind what an earlier leader's has passed must not decide what that
  // leader did not.
  const bool was_stalled = lasts >= kLongNs && now.clock >= passed_;
  const bool may_catch = tick.leads && (tick.decides || was_stalled);
  if (!requested && !tick.leads) return kNever;
  const std::int64_t period = requested                      ? kProbeKnownNs
                              : options_.computation_ns != 0 ? options_.computation_ns
                              : now.known                    ? kProbeKnownNs
                                                             : kProbeNs;
  if (now_ns_ - probed_at_ns_ >= period) {
    probed_at_ns_ = now_ns_;
    const bool wanted = requested || (may_catch && now.helps && !tick.held);
    if (wanted) actions_.emplace_back(Probe{now.slot});
  }
  return probed_at_ns_ + period;
}

// A new leader proposes ATTACH for all that have arrived: proposals of the last leader may be lost,
// and a second ATTACH has no effect.
void Stalls::bring_back(const Tick& tick) {
  const bool fresh = tick.leads && !led_;
  led_ = tick.leads;
  if (tick.arrivals == seen_arrivals_ && !fresh) return;
  seen_arrivals_ = tick.arrivals;
  if (!tick.leads) return;
  if (fresh) attach_proposed_.clear();
  actions_.emplace_back(LookForArrived{});
}

void Stalls::on(const Arrived& arrived) {
  const auto in = [](const auto& list, const auto& is) {
    return std::any_of(list.begin(), list.end(), is);
  };
  std::erase_if(attach_proposed_, [&](const AttachBody& a) {
    return !in(arrived.slots, [&a](const AttachBody& b) { return a.slot == b.slot; });
  });
  for (const AttachBody& body : arrived.slots) {
    const bool proposed = in(attach_proposed_, [&body](const AttachBody& a) {
      return a.slot == body.slot && a.number == body.number;
    });
    if (!proposed) actions_.emplace_back(Propose{body});
  }
}

std::int64_t Stalls::report_progress(const Tick& tick) {
  passed_proposed_ = std::max(passed_proposed_, passed_);
  if (tick.clock <= passed_proposed_) return kNever;
  const std::int64_t due = reported_at_ns_ + (tick.idle ? kReportIdleNs : kReportBusyNs);
  if (now_ns_ < due) return due;
  actions_.emplace_back(Propose{PassedBody{tick.clock}});
  return kNever;
}

void Stalls::on(const Proposed& proposed) {
  if (const auto* preempt = std::get_if<PreemptBody>(&proposed.entry)) {
    if (proposed.ok) proposed_clock_ = preempt->clock;
  } else if (const auto* passed = std::get_if<PassedBody>(&proposed.entry)) {
    if (!proposed.ok) return;
    passed_proposed_ = passed->clock;
    reported_at_ns_ = now_ns_;
  } else if (proposed.ok) {
    attach_proposed_.push_back(std::get<AttachBody>(proposed.entry));
  } else {
    led_ = false;  // the next step retries
  }
}

}  // namespace crane::replica
