// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/pacing.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "proxy/clients/tuning.h"
#include "proxy/replica/recovery/recovery.h"

namespace crane::node {
namespace {
constexpr std::int64_t kLogEveryNs = 60'000'000'000;
}  // namespace

ClientPacing::ClientPacing(ReplicaId self, std::int64_t lag_ns, Members members)
    : self_(self), lag_ns_(lag_ns), members_(std::move(members)), flow_(lag_ns) {}

// What the own server has not read leaves half of the inbound blocks free: what is under way needs
// at most the other half (C4).
bool ClientPacing::step(const Seen& seen, std::int64_t now_ns) {
  const std::uint64_t outstanding =
      seen.proposed > seen.applied ? value(seen.proposed) - value(seen.applied) : 0;
  const std::uint64_t bytes = seen.waiting_bytes;
  const bool over = outstanding > proxy::kPipelineEntries || bytes > proxy::kPipelineBytes;
  const bool under = outstanding < proxy::kPipelineEntries / 2 && bytes < proxy::kPipelineBytes / 2;
  if (seen.leads) flow_.applied(seen.applied, now_ns);
  const bool waits = must_wait(seen.leads, now_ns);
  const bool free = under && !seen.busy && !seen.full && !waits;
  const bool pause = seen.paused ? !free : over || seen.busy || seen.full || waits;
  note(waits && pause, now_ns);
  const bool held = seen.leads && pause && (waits || seen.full);
  if (!held) held_since_ns_ = 0;
  if (held && held_since_ns_ == 0) held_since_ns_ = now_ns;
  return pause;
}

// A majority's servers must be near the leader's (FLOW-1).
bool ClientPacing::must_wait(bool leads, std::int64_t now_ns) const {
  if (!leads || !flow_.anybody_late(now_ns)) return false;
  std::vector<ReplicaId> others;
  std::size_t voters = 0;
  for (const consensus::MemberStatus& m : members_()) {
    if (m.role != consensus::MemberRole::kVoter) continue;
    ++voters;
    if (m.connected && m.id != self_) others.push_back(m.id);
  }
  return flow_.holds(others, voters / 2, now_ns);
}

void ClientPacing::note(bool waits, std::int64_t now_ns) {
  if (since_ns_ != 0) waited_ns_ += now_ns - since_ns_;
  since_ns_ = waits ? now_ns : 0;
  if (!waits || (logged_ns_ != 0 && now_ns - logged_ns_ < kLogEveryNs)) return;
  logged_ns_ = now_ns;
  spdlog::info(
      "clients wait for followers, whose servers are more than {} ms behind this one; they "
      "have for {} ms in all",
      lag_ns_ / 1'000'000, waited_ns_ / 1'000'000);
}

std::optional<ProgressReporter::Lag> ProgressReporter::new_lag(Index applied, bool recovers,
                                                               std::int64_t now_ns) noexcept {
  const std::int64_t behind = report_.behind_ns(applied, now_ns);
  const std::int64_t late = behind < proxy::kLateNs ? 0 : behind;
  const std::int64_t ns = recovers ? std::max(late, replica::kRecoversLagNs) : late;
  const bool changed = ns >= lag_.ns + kLagStepNs || ns <= lag_.ns - kLagStepNs;
  if (!changed && (ns == 0 || applied == lag_.ran)) return std::nullopt;
  lag_ = {ns, applied};
  return lag_;
}

std::int64_t ProgressReporter::step(Index applied, bool recovers, std::int64_t now_ns) {
  const bool due = report_.due(applied, now_ns);
  if (!recovers && report_.caught_up(now_ns)) life_ = 0;
  if (due) send_({value(applied), life_});
  return report_.again_ns(now_ns);
}

}  // namespace crane::node
