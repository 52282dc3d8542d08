// SPDX-License-Identifier: Apache-2.0
#pragma once
// To which replica a leader hands the lead that it gives up: clients wait until the next leader's
// server has run what it lacks, so the best server leads, and not only the best log.
//
// Pure.  Threads: any.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>

#include "proxy/replica/role/lead_watch.h"
#include "proxy/replica/role/tuning.h"
#include "proxy/replica/step.h"

namespace crane::replica {

// Among the other voters that follow `self` with a server: one that does not recover, and the least
// late of these.  nullopt: there is none.
inline std::optional<ReplicaId> best_successor(std::span<const MemberView> members,
                                               ReplicaId self) noexcept {
  const auto rank = [](const MemberView& m) {
    const std::int64_t own_ns = m.report ? m.report->lag_ms * 1'000'000 : 0;
    const std::int64_t lag_ns = std::max(m.lag_ns, own_ns);
    return std::tuple{m.report && m.report->recovers, lag_ns < kLateNs ? 0 : lag_ns};
  };
  const MemberView* best = nullptr;
  for (const MemberView& m : members) {
    if (!LeadWatch::may_take_lead(m, self) || m.only_votes()) continue;
    if (best == nullptr || rank(m) < rank(*best)) best = &m;
  }
  return best == nullptr ? std::nullopt : std::optional{best->id};
}

}  // namespace crane::replica
