// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/flow_control.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::replica {
namespace {
constexpr std::int64_t kSecondNs = 1'000'000'000;
}  // namespace

void Trail::at(Index index, std::int64_t now_ns) noexcept {
  CRANE_ASSERT(index >= newest_.index && now_ns >= newest_.at_ns);
  if (index == newest_.index) return;
  newest_ = {index, now_ns};
  if (used_ != 0 && now_ns - steps_[(used_ - 1) % kSteps].at_ns < kTrailStepNs) return;
  steps_[used_++ % kSteps] = newest_;
}

std::int64_t Trail::left(Index index) const noexcept {
  // Called in each round of a node, so it is a binary search: the steps ascend.
  std::uint64_t first = used_ - std::min<std::uint64_t>(used_, kSteps), end = used_;
  while (first < end) {
    const std::uint64_t middle = first + (end - first) / 2;
    if (steps_[middle % kSteps].index > index) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  return first < used_ ? steps_[first % kSteps].at_ns : newest_.at_ns;
}

Index Trail::where(std::int64_t then_ns) const noexcept {
  const std::uint64_t oldest = used_ - std::min<std::uint64_t>(used_, kSteps);
  for (std::uint64_t i = used_; i > oldest; --i) {
    const Step& step = steps_[(i - 1) % kSteps];
    if (step.at_ns <= then_ns || i - 1 == oldest) return step.index;
  }
  return newest_.index;
}

bool ProgressReport::due(Index applied, std::int64_t now_ns) noexcept {
  if (applied != seen_) moved_ns_ = now_ns;
  seen_ = applied;
  if (applied >= log_.newest() || now_ns - log_.left(applied) < kLateNs) {
    if (near_ns_ == 0 && log_.newest() != Index{0}) near_ns_ = now_ns;
    return std::exchange(reported_late_, false);
  }
  near_ns_ = 0;
  const bool is_still = applied == reported_;
  if (now_ns - reported_ns_ < (is_still ? kRepeatNs : kReportNs)) return false;
  if (is_still && now_ns - moved_ns_ > kStalledNs) return false;
  reported_ = applied;
  reported_ns_ = now_ns;
  reported_late_ = true;
  return true;
}

std::int64_t ProgressReport::again_ns(std::int64_t now_ns) const noexcept {
  const std::int64_t again = reported_ns_ + kRepeatNs;
  const bool repeats = reported_late_ && again > now_ns && again <= moved_ns_ + kStalledNs;
  return repeats ? again : std::numeric_limits<std::int64_t>::max();
}

FlowControl::FlowControl(std::int64_t limit_ns) noexcept : limit_ns_(limit_ns) {
  CRANE_ASSERT(limit_ns >= 0 && limit_ns <= kLagMostNs);
}

void FlowControl::lead() noexcept {
  followers_ = {};
  trail_ = {};
  last_received_ns_ = 0;
}

void FlowControl::on_report(ReplicaId from, const ProgressMessage& note,
                            std::int64_t now_ns) noexcept {
  if (value(from) >= followers_.size()) return;
  Follower& f = followers_[value(from)];
  const bool heard_again = f.last_received_ns != 0 && now_ns - f.last_received_ns > kStalledNs;
  f.last_report = note;
  f.last_received_ns = last_received_ns_ = now_ns;
  const bool was_silent = late(f, now_ns) && (heard_again || f.was_silent);
  const bool returns = note.recovers != 0 && note.recovers != f.returned;
  if (returns || (was_silent && heard_again && note.recovers == 0)) begin_help(f, now_ns);
  if (returns) f.returned = note.recovers;
  f.was_silent = was_silent;
  if (!f.helped ? now_ns - f.recovering_since_ns >= kHelpAfterNs
                : now_ns - f.helped_ns >= kHelpSpanNs) {
    begin_span(f, now_ns);
  }
}

void FlowControl::begin_help(Follower& f, std::int64_t now_ns) const noexcept {
  f.recovering_since_ns = now_ns;
  f.had = value(trail_.newest()) - value(trail_.where(now_ns - kSecondNs));
  f.helped = false;
}

void FlowControl::begin_span(Follower& f, std::int64_t now_ns) const noexcept {
  const std::int64_t kept =
      f.helped ? std::clamp<std::int64_t>(debt(f, now_ns), 0, kHelpSlack + 1) : 0;
  f.helped = true;
  f.helped_ns = now_ns;
  f.from = Index{f.last_report.applied};
  f.own = Index{value(trail_.newest()) - static_cast<std::uint64_t>(kept)};
}

bool FlowControl::is_report_valid(const Follower& f, std::int64_t now_ns) noexcept {
  return f.last_received_ns != 0 && now_ns - f.last_received_ns <= kReportValidNs;
}

bool FlowControl::late(const Follower& f, std::int64_t now_ns) const noexcept {
  return limit_ns_ != 0 && is_report_valid(f, now_ns) &&
         trail_.since(Index{f.last_report.applied}) > limit_ns_;
}

FollowerLag FlowControl::lag_of(ReplicaId peer, std::int64_t now_ns) const noexcept {
  const Follower& f = followers_[value(peer)];
  const std::uint64_t own = value(trail_.newest());
  if (!is_report_valid(f, now_ns) || f.last_report.applied >= own) return {};
  return {own - f.last_report.applied, trail_.since(Index{f.last_report.applied})};
}

bool FlowControl::has_late_follower(std::int64_t now_ns) const noexcept {
  if (last_received_ns_ == 0 || now_ns - last_received_ns_ > kReportValidNs) return false;
  return std::any_of(followers_.begin(), followers_.end(),
                     [&](const Follower& f) { return late(f, now_ns); });
}

std::int64_t FlowControl::debt(const Follower& f, std::int64_t now_ns) const noexcept {
  const std::uint64_t own = value(trail_.newest()) - value(f.own);
  const std::uint64_t gained = (f.last_report.applied - value(f.from)) / 2;
  const auto ms = static_cast<std::uint64_t>((now_ns - f.helped_ns) / 1'000'000);
  const std::uint64_t kept = f.had * ms / 2'000;  // half of the earlier rate (FLOW-2)
  return static_cast<std::int64_t>(own) - static_cast<std::int64_t>(std::max(gained, kept));
}

bool FlowControl::helps(std::int64_t now_ns) const noexcept {
  return std::any_of(followers_.begin(), followers_.end(), [&](const Follower& f) {
    return f.recovers() && f.helped && now_ns - f.recovering_since_ns < kHelpNs &&
           late(f, now_ns) && debt(f, now_ns) > kHelpSlack;
  });
}

bool FlowControl::holds(std::span<const ReplicaId> others, std::size_t needed,
                        std::int64_t now_ns) const noexcept {
  std::size_t there = 0, near = 0;
  for (const ReplicaId peer : others) {
    const Follower& f = followers_[value(peer)];
    if (late(f, now_ns) && f.recovers()) continue;
    ++there;
    near += !late(f, now_ns);
  }
  // One more loss would stop the group (FLOW-2).
  const bool bare = there <= needed;
  return (there >= needed && near < needed) || (bare && helps(now_ns));
}

}  // namespace crane::replica
