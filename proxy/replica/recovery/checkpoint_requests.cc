// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/recovery/checkpoint_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::replica {
namespace {

// How often the leader looks for a replica that needs a checkpoint to continue.
constexpr std::int64_t kLookNs = 50'000'000;
// When to repeat a request whose checkpoint was not taken.
constexpr std::int64_t kAskAgainNs = 5'000'000'000;
// A replica without a server begins at a checkpoint within this time, or cannot.
constexpr std::int64_t kBegunNs = 60'000'000'000;
// A follower's server that is this late, in time of the leader's, delays a checkpoint.
constexpr std::int64_t kFarBehindNs = 1'000'000'000;

bool contains(const std::vector<ReplicaId>& some, ReplicaId one) {
  return std::find(some.begin(), some.end(), one) != some.end();
}

}  // namespace

bool CheckpointRequests::alone(const Facts& facts) const {
  return std::none_of(facts.members.begin(), facts.members.end(), [this](const MemberView& m) {
    return m.id != rules_.self && m.connected && m.votes() && !m.only_votes() &&
           (!m.needs_checkpoint || mutant(Mutant::kLackingServes));
  });
}

// In ascending order.
std::vector<ReplicaId> CheckpointRequests::able(const Facts& facts) const {
  std::vector<ReplicaId> able;
  for (const MemberView& m : facts.members) {
    if (!m.votes() || m.id == rules_.self) continue;
    const bool there = (m.connected && m.streaming) || mutant(Mutant::kAskAbsent);
    if (there && !m.only_votes()) able.push_back(m.id);
  }
  if (alone(facts)) able.push_back(rules_.self);  // ASK-1
  return able;
}

// Those of able() that can take it at once; all if none can.
std::vector<ReplicaId> CheckpointRequests::soonest(const Facts& facts) const {
  std::vector<ReplicaId> able = this->able(facts);
  const auto late = std::stable_partition(able.begin(), able.end(), [&](ReplicaId peer) {
    return std::none_of(facts.members.begin(), facts.members.end(), [peer](const MemberView& m) {
      return m.id == peer && m.lag_ns >= kFarBehindNs;
    });
  });
  if (late == able.begin()) return able;
  able.erase(late, able.end());
  return able;
}

void CheckpointRequests::ask(Reason reason, std::optional<ReplicaId> of, const Facts& facts,
                             ActionList& out) {
  CRANE_ASSERT(open_.kind == Reason::kNone);  // REPLICA-S1
  open_ = reason;
  if (!facts.started) return refuse("not_leader", "this replica does not lead", facts, out);
  const std::vector<ReplicaId> able = this->able(facts);
  if (of && !contains(able, *of)) {
    return refuse("busy", fmt::format("replica {} is the leader, or does not follow", value(*of)),
                  facts, out);
  }
  if (able.empty()) return refuse("busy", "no other replica follows", facts, out);
  const std::vector<ReplicaId> soonest = this->soonest(facts);
  auto chosen = std::upper_bound(soonest.begin(), soonest.end(), last_asked_);  // ASK-2
  if (chosen == soonest.end()) chosen = soonest.begin();
  taker_ = of ? *of : *chosen;
  out.push_back(ProposeCheckpoint{taker_});
}

// Refuses the request before it was proposed.
void CheckpointRequests::refuse(const char* kind, const std::string& text, const Facts& facts,
                                ActionList& out) {
  const Reason reason = std::exchange(open_, {});
  if (reason.kind == Reason::kOperator) out.push_back(Answer{kind, text, {}, {}});
  if (reason.kind == Reason::kWish) {
    log_wish(reason, text, out);
    WishRefusal note{value(reason.behind), {}};
    text.copy(note.why, sizeof note.why - 1);
    out.push_back(SendNote{reason.of, note});  // if it is lost, the wish comes again
  }
  if (reason.kind == Reason::kSchedule) schedule_.failed(facts.now_ns, false);
}

// The operator waits on another host, and sees the status of that host's replica only.
void CheckpointRequests::log_wish(const Reason& reason, const std::string& result,
                                  ActionList& out) {
  out.push_back(
      LogMessage{Level::kInfo,
                 fmt::format("an operator of replica {} requests a checkpoint after entry {}: {}",
                             value(reason.of), value(reason.behind), result)});
}

void CheckpointRequests::proposed(const Proposed& result, const Facts& facts, ActionList& out) {
  if (open_.kind == Reason::kNone) return;
  if (value(result.at) == 0) return refuse("busy", result.why_not, facts, out);
  const Reason reason = std::exchange(open_, {});
  last_asked_ = taker_;
  request_index_ = result.at;
  request_view_ = facts.view;
  if (seen_.now_ns != 0) schedule_.asked(seen_);
  const std::string text =
      fmt::format("replica {} takes a checkpoint at entry {}", value(taker_), value(result.at));
  switch (reason.kind) {
    case Reason::kOperator:
      out.push_back(Answer{nullptr, text, taker_, result.at});
      break;
    case Reason::kLacks:
    case Reason::kWaits: {
      const bool waits = reason.kind == Reason::kWaits;
      out.push_back(LogMessage{
          Level::kInfo,
          fmt::format("replica {} {}: {}", value(reason.of),
                      waits ? "waits for a checkpoint" : "lacks entries that left the log", text)});
      look_at_ns_ = facts.now_ns + kAskAgainNs;
      if (waits) waited_for_ns_ = facts.now_ns;
      break;
    }
    case Reason::kReturned:
      helped_ns_ = facts.now_ns;
      out.push_back(
          LogMessage{Level::kInfo, fmt::format("replica {} needs a checkpoint after entry {}: {}",
                                               value(reason.of), value(reason.behind), text)});
      break;
    case Reason::kWish:
      log_wish(reason, text, out);
      break;
    case Reason::kNone:
    case Reason::kCraneRun:
    case Reason::kSchedule:
      break;
  }
}

void CheckpointRequests::wish(ReplicaId peer, Index behind, const Facts& facts, ActionList& out) {
  if (!facts.started || !contains(able(facts), peer)) return;
  const bool requested =
      last_asked_ == peer && request_view_ == facts.view && request_index_ > behind;
  if (!requested) ask({Reason::kWish, peer, behind}, peer, facts, out);
}

// A checkpoint that is under way will do.
bool CheckpointRequests::take_suggestion(const Facts& facts) {
  if (!suggested_ || able(facts).empty()) return false;
  suggested_ = false;
  return rules_.why_not_wanted.empty() && !schedule_.under_way();
}

void CheckpointRequests::step(bool full, const Facts& facts, ActionList& out) {
  seen_ = {facts.now_ns, facts.log_end, facts.inputs, facts.low_on_room, full};
  if (rules_.why_not_wanted.empty() && schedule_.due(seen_)) {
    return ask({Reason::kSchedule}, std::nullopt, facts, out);
  }
  if (take_suggestion(facts)) return ask({Reason::kCraneRun}, std::nullopt, facts, out);
  if (facts.now_ns < look_at_ns_) return;
  give_up_lost(facts);
  help_lagging(facts, out);
}

void CheckpointRequests::on_report(const CheckpointNote& note, std::int64_t now_ns) {
  if (note.state == CheckpointNote::kTaken) {
    newest_ = std::max(newest_, Index{note.index});
    return schedule_.taken(note.end, now_ns);
  }
  // The note may be about an earlier one, which was given up late.
  if (!schedule_.under_way() || Index{note.index} < request_index_) return;
  schedule_.failed(now_ns, note.state == CheckpointNote::kRefused);
}

// The replica that was to take the checkpoint is gone.
void CheckpointRequests::give_up_lost(const Facts& facts) {
  if (schedule_.under_way() && !contains(able(facts), last_asked_)) {
    schedule_.failed(facts.now_ns, false);
  }
}

void CheckpointRequests::help_lagging(const Facts& facts, ActionList& out) {
  look_at_ns_ = facts.now_ns + kLookNs;
  if (mutant(Mutant::kForgetWaiting)) return;
  for (const MemberView& m : facts.members) {
    // A server in valgrind cannot begin at a checkpoint.
    if (m.role == consensus::MemberRole::kAnalysis || m.id == rules_.self) continue;
    const bool waits = helps(m, facts.now_ns);
    if (!m.needs_checkpoint && !waits) continue;
    return ask({waits ? Reason::kWaits : Reason::kLacks, m.id, {}}, std::nullopt, facts, out);
  }
}

// A replica without a server waits for a checkpoint that does not exist; otherwise it would have
// begun.
bool CheckpointRequests::helps(const MemberView& member, std::int64_t now_ns) const {
  if (!member.connected || !member.only_votes() || !rules_.why_not_wanted.empty()) return false;
  if (schedule_.under_way() || schedule_.refused(now_ns)) return false;
  return newest_ <= member.report->waits_behind || now_ns >= waited_for_ns_ + kBegunNs;
}

void CheckpointRequests::help(ReplicaId peer, Index behind, const Facts& facts, ActionList& out) {
  if (facts.now_ns < helped_ns_ + kAskAgainNs) return;
  ask({Reason::kReturned, peer, behind}, std::nullopt, facts, out);
}

}  // namespace crane::replica
