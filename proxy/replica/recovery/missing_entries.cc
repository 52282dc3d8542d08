// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/recovery/missing_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace crane::replica {
namespace {

constexpr std::int64_t kLookNs = 50'000'000;
// How often a replica without a server looks for a checkpoint that was not reported to it.
constexpr std::int64_t kFirstLookNs = 500'000'000;
// After this time an unusable one is tried again: the disk may have been full.
constexpr std::int64_t kUnusableNs = 30'000'000'000;

bool is_other_voter(const MemberView& m, ReplicaId self) noexcept {
  return m.votes() && m.id != self;
}

}  // namespace

bool none_has_server(std::span<const MemberView> members, ReplicaId self) noexcept {
  return std::none_of(members.begin(), members.end(), [self](const MemberView& m) {
    return is_other_voter(m, self) && m.connected && !m.only_votes();
  });
}

bool suffice_without_self(std::span<const MemberView> members, ReplicaId self) noexcept {
  std::size_t voters = 0, others = 0;
  for (const MemberView& m : members) {
    voters += m.votes() ? 1 : 0;
    const bool receives_log = m.connected && m.report && !m.report->lacks;
    others += is_other_voter(m, self) && receives_log ? 1 : 0;
  }
  return others * 2 > voters;
}

bool may_restart(std::span<const MemberView> members, ReplicaId self, Index at,
                 std::int64_t known_ns) noexcept {
  if (none_has_server(members, self)) return true;
  const bool another_first = std::any_of(members.begin(), members.end(), [&](const MemberView& m) {
    return is_other_voter(m, self) && m.connected && m.id < self && m.only_votes() &&
           m.report->waits_behind < at;
  });
  if (another_first && known_ns < kTurnNs) return false;
  const auto voters =
      std::count_if(members.begin(), members.end(), [](const MemberView& m) { return m.votes(); });
  return voters <= 2 || suffice_without_self(members, self) || known_ns >= kSpareNs;
}

void MissingEntries::begin(Index held, Index begins, std::int64_t now_ns) noexcept {
  held_ = held;
  begins_ = begins;
  began_ns_ = now_ns;
}

// Returns the newest one of this machine; if none is after `last`, one is fetched, and this is
// called again.
std::optional<Index> MissingEntries::choose(const Found& found, Index last, std::int64_t now_ns,
                                            ActionList& out) const {
  const bool again =
      now_ns - began_ns_ >= kUnusableNs || mutant_ == Mutant::kRetryUnusable;  // LACK-2
  const auto unusable = again ? std::span<const Index>() : std::span(found.unusable);
  for (const CheckpointView& one : found.checkpoints) {
    if (one.distrusted) continue;
    if (one.at.at.index <= last && mutant_ != Mutant::kRestartAnywhere) break;  // LACK-1
    if (std::find(unusable.begin(), unusable.end(), one.at.at.index) != unusable.end()) continue;
    // The process that fetched it has not reported yet, and may not be done.
    if (one.here && found.fetching) return std::nullopt;
    return one.at.at.index;
  }
  out.push_back(FetchCheckpoint{last});
  return std::nullopt;
}

// Entries that this replica lacks have left the others' logs, or a newer checkpoint overtakes it.
void MissingEntries::step(bool caught_up, const Facts& facts, ActionList& out) {
  if (facts.now_ns < look_ns_) return;
  look_ns_ = facts.now_ns + kLookNs;
  if (facts.needs_checkpoint) {  // the leader has another one taken (checkpoint_requests.h)
    behind_ = std::max(facts.taken, begins_);
    if (!std::exchange(reported_, true)) {
      out.push_back(LogMessage{
          Level::kWarning, fmt::format("entries after {} have left the logs of the others: this "
                                       "replica waits for a newer checkpoint",
                                       value(behind_))});
    }
    out.push_back(FindCheckpoints{Purpose::kMissing});
    return;
  }
  if (!overtaking_.active() && mutant_ != Mutant::kOvertakeAlways) return;
  Overtaking::Inputs seen;
  seen.applied = facts.applied;
  seen.caught_up = caught_up && facts.applied >= facts.for_server;
  seen.spared = suffice_without_self(facts.members, self_);
  seen.now_ns = facts.now_ns;
  auto least = overtaking_.step(seen);  // OVERTAKE-1
  if (mutant_ == Mutant::kOvertakeAlways) least = Index{value(facts.applied) + 1};
  if (!least) return;
  behind_ = Index{value(*least) - 1};
  out.push_back(FindCheckpoints{Purpose::kOvertake});
}

void MissingEntries::step_first(const Facts& facts, ActionList& out) {
  if (facts.now_ns < look_first_ns_ || mutant_ == Mutant::kNeverLook) return;
  look_first_ns_ = facts.now_ns + kFirstLookNs;
  out.push_back(FindCheckpoints{Purpose::kFirst});
}

void MissingEntries::found(const Found& found, const Facts& facts, ActionList& out) {
  if (found.purpose == Purpose::kFirst) return found_first(found, facts, out);
  const auto at = choose(found, behind_, facts.now_ns, out);
  if (!at) return;
  out.push_back(Restart{
      found.purpose == Purpose::kMissing
          ? fmt::format("entries after {} have left the logs of the others; it restarts at a "
                        "checkpoint, which is at entry {}",
                        value(behind_), value(*at))
          : fmt::format("its server is at entry {} and far behind; it restarts at a newer "
                        "checkpoint, which is at entry {}",
                        value(facts.applied), value(*at))});
}

// Restarts at a checkpoint after everything that the log held; if no other replica has a server,
// one inside the log will do.
void MissingEntries::found_first(const Found& found, const Facts& facts, ActionList& out) {
  const bool none = none_has_server(facts.members, self_);
  const auto at = choose(found, none ? begins_ : held_, facts.now_ns, out);
  if (!at) {
    known_ns_ = 0;
    const bool lost = std::all_of(
        facts.members.begin(), facts.members.end(),
        [this](const MemberView& m) { return !is_other_voter(m, self_) || m.only_votes(); });
    if (!lost || !found.distrusted_behind) return;
    // START-3: no replica has a server, and none can take a checkpoint.
    out.push_back(NoteLogGone{});
    out.push_back(Restart{
        "no replica has a server, and the log reaches back only to a checkpoint after which "
        "replicas differed; this replica restarts there"});
    return;
  }
  if (known_ns_ == 0) known_ns_ = facts.now_ns;
  const bool may = may_restart(facts.members, self_, *at, facts.now_ns - known_ns_);
  if (!may && mutant_ != Mutant::kRestartAtOnce) return;
  out.push_back(Restart{
      fmt::format("this replica has no server yet; it restarts at a checkpoint, which is at entry "
                  "{}",
                  value(*at))});
}

}  // namespace crane::replica
