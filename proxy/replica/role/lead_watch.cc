// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/lead_watch.h"

#include <algorithm>

#include "dmt/base/assert.h"

namespace crane::replica {

bool LeadWatch::is_ahead(const Ahead& a, const Inputs& seen) const noexcept {
  if (!seen.has_server) return value(a.applied) > 0;
  return a.applied > seen.applied || (a.clock != 0 && a.clock >= seen.clock);
}

LeadWatch::Next LeadWatch::step(const Inputs& seen, std::span<const ReplicaId> voters,
                                std::int64_t now_ns) noexcept {
  if (!seen.leads || seen.applied != seen_.applied) moved_ns_ = now_ns;
  seen_ = seen;
  if (handed_over_ns_ != 0 && now_ns - handed_over_ns_ > kForgiveNs) power_ = 0;
  Next actions;
  const std::int64_t behind_ns = seen.has_server ? seen.behind_ns : kAskAfterNs;
  if (!seen.leads || behind_ns == 0 || mutant_ == Mutant::kKeepLead) {
    ahead_ = {};
    return actions;
  }
  if (behind_ns < kAskAfterNs) {
    for (auto& a : ahead_) {
      if (a && !is_ahead(*a, seen)) a.reset();
    }
    actions.due_ns = now_ns + kAskAfterNs - behind_ns;
    return actions;
  }
  for (std::uint8_t i = 0; i < ahead_.size(); ++i) {
    auto& a = ahead_[i];
    const bool there = std::find(voters.begin(), voters.end(), ReplicaId{i}) != voters.end();
    if (a && (!there || !is_ahead(*a, seen))) a.reset();  // a new process has run less
  }
  actions.asks = now_ns >= ask_ns_;
  if (actions.asks) ask_ns_ = now_ns + kAskNs;
  actions.due_ns = ask_ns_;
  if (now_ns < disk_until_ns_) return actions;
  const std::optional<Ahead>* best = nullptr;
  for (const ReplicaId id : voters) {
    const auto& a = ahead_[value(id)];
    if (!a || now_ns - a->since_ns < patience_ns(*a, now_ns)) continue;
    if (best != nullptr && a->applied <= (*best)->applied) continue;
    CRANE_ASSERT(is_ahead(*a, seen));  // LAG-1
    best = &a;
    actions.successor = id;
  }
  return actions;
}

void LeadWatch::on_report(ReplicaId from, const ServerPlaceMessage& answer,
                          std::int64_t now_ns) noexcept {
  if (value(from) >= ahead_.size()) return;
  auto& known = ahead_[value(from)];
  const Ahead now{Index{answer.applied}, answer.waits != 0 ? answer.clock : 0, now_ns,
                  seen_.behind_ns};
  if (!seen_.leads || known || !is_ahead(now, seen_)) return;  // the oldest answer counts
  known = now;
}

void LeadWatch::handed_over(std::int64_t now_ns) noexcept {
  if (handed_over_ns_ != 0) power_ = std::min(power_ + 1, kPatiencePowerMax);
  handed_over_ns_ = now_ns;
  ahead_ = {};
}

}  // namespace crane::replica
