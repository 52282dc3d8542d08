// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/pacing.h"

#include <algorithm>

#include "proxy/replica/recovery/recovery.h"
#include "proxy/replica/role/tuning.h"

namespace crane::replica {
namespace {
constexpr std::int64_t kReportEveryNs = 60'000'000'000;
}  // namespace

// The input that this replica's server has not read must leave half of the inbound blocks free: the
// input in flight needs at most the other half (C4).
ClientPacing::Next ClientPacing::step(const Inputs& seen, std::int64_t now_ns) noexcept {
  const std::uint64_t outstanding =
      seen.proposed > seen.applied ? value(seen.proposed) - value(seen.applied) : 0;
  const std::uint64_t bytes = seen.waiting_bytes;
  const bool over = outstanding > kPipelineEntries || bytes > kPipelineBytes;
  const bool under = outstanding < kPipelineEntries / 2 && bytes < kPipelineBytes / 2;
  if (seen.leads) flow_.applied(seen.applied, now_ns);
  // A majority's servers must be near the leader's (FLOW-1).
  const bool waits = seen.leads && flow_.has_late_follower(now_ns) &&
                     flow_.holds(seen.others, seen.voters / 2, now_ns);
  const bool free = under && !seen.busy && !seen.full && !waits;
  Next next;
  next.pause = seen.paused ? !free : over || seen.busy || seen.full || waits;
  next.report = note(waits && next.pause, now_ns);
  const bool held = seen.leads && next.pause && (waits || seen.full);
  if (!held) held_since_ns_ = 0;
  if (held && held_since_ns_ == 0) held_since_ns_ = now_ns;
  return next;
}

bool ClientPacing::note(bool waits, std::int64_t now_ns) noexcept {
  if (since_ns_ != 0) waited_ns_ += now_ns - since_ns_;
  since_ns_ = waits ? now_ns : 0;
  if (!waits || (reported_ns_ != 0 && now_ns - reported_ns_ < kReportEveryNs)) return false;
  reported_ns_ = now_ns;
  return true;
}

std::optional<ProgressReporter::Lag> ProgressReporter::new_lag(Index applied, bool recovers,
                                                               std::int64_t now_ns) noexcept {
  const std::int64_t behind = report_.behind_ns(applied, now_ns);
  const std::int64_t late = behind < kLateNs ? 0 : behind;
  const std::int64_t ns = recovers ? std::max(late, kRecoversLagNs) : late;
  const bool changed = ns >= lag_.ns + kLagStepNs || ns <= lag_.ns - kLagStepNs;
  if (!changed && (ns == 0 || applied == lag_.ran)) return std::nullopt;
  lag_ = {ns, applied};
  return lag_;
}

ProgressReporter::Next ProgressReporter::step(Index applied, bool recovers,
                                              std::int64_t now_ns) noexcept {
  const bool due = report_.due(applied, now_ns);
  if (!recovers && report_.caught_up(now_ns)) life_ = 0;
  Next next;
  if (due) next.note = ProgressMessage{value(applied), life_};
  next.due_ns = report_.again_ns(now_ns);
  return next;
}

}  // namespace crane::replica
