// SPDX-License-Identifier: Apache-2.0
// The properties of a world, checked at each moment.
#include <algorithm>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

// Times after the last fault: what the rules of recovery allow, with their own pauses (kSpareNs,
// the schedule's, crane-run's).
constexpr std::int64_t kLeaderNs = 1'000 * kMs, kServedNs = 40'000 * kMs, kWholeNs = 180'000 * kMs;
// Two looks of crane-ctl while leadership changes; the cost of a loss that status allowed,
// including an election.
constexpr std::int64_t kHonestNs = 500 * kMs, kLossNs = 500 * kMs, kStalledNs = 1'000 * kMs;
// crane-run waits for the other servers' ends (kExitTimeoutMs); stopped hosts and nodes return.
constexpr std::int64_t kExitNs = 60'000 * kMs;
constexpr std::int64_t kNearNs = 2'000 * kMs;
// Servers are compared once per this many entries.
constexpr std::uint64_t kCutEntries = 16;
constexpr std::int64_t kProceedsNs = 50 * kMs;
// A server that is this far behind needs a while.
constexpr std::uint64_t kFarEntries = 100;

}  // namespace

void ReplicaWorld::check() {
  if (log_.lost_committed()) violate("KEPT: a leader lacks what was committed");
  for (const auto& r : replicas_) {
    if (r->applied() > log_.committed()) violate("KEPT: a server has run what was not committed");
    if (!differed_ && r->up() && r->has_server() && differs(*r)) {
      violate("KEPT: a server has run other inputs");
    }
  }
  compare();
  if (log_.leader() == kNone) unled_ns_ = now_ns_;
  if (log_.leader() != kNone || !log_.has_majority()) led_ns_ = now_ns_;
  if (faulty()) {
    calm_ns_ = 0;
    calm_restarts_ = 0;
  } else if (calm_ns_ == 0) {
    calm_ns_ = now_ns_;
  }
  check_near();
  check_status();
  check_waits();
  check_tier();
  check_exit();
  if (exited_ns_ == 0 && calm_ns_ != 0) check_calm();
}

bool ReplicaWorld::supervised() const {
  return std::none_of(supervisors_.begin(), supervisors_.end(),
                      [](const auto& s) { return s->stopped(); });
}

bool ReplicaWorld::faulty() const {
  bool lost = false;
  for (unsigned id = 0; id < replicas(); ++id) lost = lost || hosts_.lost(id);
  return lost || now_ns_ < settings_.busy_ns || next_fault_ < faults_.size() ||
         !proceeds_.empty() || disk_full() || !supervised() ||
         now_ns_ < std::max({slow_until_ns_, stopped_until_ns_, refuses_until_ns_});
}

bool ReplicaWorld::clients_done() const { return !clients_ || clients_->missing().empty(); }

bool ReplicaWorld::all_restored() const {
  return std::all_of(replicas_.begin(), replicas_.end(), [](const auto& r) { return r->whole(); });
}

// --- comparisons (proxy/replica/check/cuts.h) ---------------------------------------------------

bool ReplicaWorld::differs(const ModelReplica& r) { return r.hash() != hash_at(r.applied()); }

void ReplicaWorld::begins_at(const StoredCheckpoint& one, bool another) {
  if (!differed_ && one.hash != hash_at(one.at)) {
    violate("HONEST: a checkpoint holds another state");
  }
  if (one.distrusted() && another) violate("TRUST: " + describe());
}

// A replica that differs from a majority ends.  If those that differ are the majority, the group
// has continued with their state.
void ReplicaWorld::compare() {
  std::vector<std::uint64_t> equal;
  unsigned others = 0;
  for (const auto& r : replicas_) {
    if (!r->server_runs()) continue;
    differed_&& differs(*r) ? void(++others) : equal.push_back(r->applied());
  }
  const unsigned majority = replicas() / 2 + 1;
  if (others >= majority) {
    result_.given_up = true;
    return;
  }
  if (equal.size() < majority) return;
  std::nth_element(equal.begin(), equal.begin() + majority - 1, equal.end(), std::greater<>());
  const std::uint64_t cut = equal[majority - 1] / kCutEntries * kCutEntries;
  for (const auto& r : replicas_) {
    if (!r->server_runs()) continue;
    const std::uint64_t upto = std::min(cut, r->applied() / kCutEntries * kCutEntries);
    if (!differed_ || !differs(*r)) {
      r->compared(upto);
    } else if (const std::uint64_t at = (r->verified() / kCutEntries + 1) * kCutEntries;
               at <= upto) {
      ++result_.diverged;
      r->differed(at);
    }
  }
}

// --- while inputs come --------------------------------------------------------------------------

// A replica whose server does not run, or is far behind, is the last choice (consensus/DESIGN.md,
// C6).  A replica that was stopped until now does not know yet how far it is.
void ReplicaWorld::check_leader() {
  if (log_.leader() == kNone || log_.elected() == elected_) return;
  elected_ = log_.elected();
  if (now_ns_ - proceeded_ns_ <= kProceedsNs) return;
  const ModelReplica& chosen = *replicas_[log_.leader()];
  for (unsigned id = 0; id < replicas(); ++id) {
    const ModelReplica& r = *replicas_[id];
    const bool could =
        log_.was_candidate(id) && r.caught_up() && r.server_runs() && r.behind_ns() == 0;
    const bool worse = !chosen.server_ran() || chosen.applied() + kFarEntries < r.applied();
    if (could && worse) violate("LAST: " + describe());
  }
}

void ReplicaWorld::check_near() {
  const unsigned leader = log_.leader();
  for (unsigned id = 0; id < replicas(); ++id) {
    const ModelReplica& r = *replicas_[id];
    const bool near = leader != kNone && id != leader && replicas_[leader]->serves() &&
                      r.server_runs() && !r.caught_up() && !log_.acceptor(id).lacks && !no_room() &&
                      r.applied() + 4 * settings_.runs_at_once >= replicas_[leader]->applied() &&
                      r.behind_ns() <= CatchUp::kNearNs;
    if (!near) near_[id] = 0;
    if (near && near_[id] == 0) near_[id] = now_ns_;
    if (near && now_ns_ - near_[id] > kNearNs) violate("NEAR: " + describe());
  }
}

// As crane-ctl computes it: by asking every node.
control::Verdict ReplicaWorld::status() const {
  using Life = ModelReplica::Life;
  control::GroupView group;
  for (unsigned id = 0; id < replicas(); ++id) {
    const ModelReplica& r = *replicas_[id];
    const Acceptor& a = log_.acceptor(id);
    control::ReplicaView seen;
    seen.replica = static_cast<int>(id);
    seen.member =
        a.votes ? control::ReplicaView::Member::kVoter : control::ReplicaView::Member::kReturning;
    seen.seen = r.up()                       ? control::ReplicaView::Contact::kReported
                : r.life() == Life::kStopped ? control::ReplicaView::Contact::kSilent
                                             : control::ReplicaView::Contact::kGone;
    seen.connected = a.connected();
    seen.receives_log = a.streaming;
    if (r.up()) seen.readiness = r.readiness();
    group.replicas.push_back(seen);
  }
  if (log_.leader() != kNone) group.leader = static_cast<int>(log_.leader());
  group.unsupervised = !supervised();
  return control::verdict_of(group);
}

// Whether another server is near.  If none is, a stopped server cannot be distinguished from one
// that computes.
bool ReplicaWorld::another_is_near() const {
  return std::any_of(replicas_.begin(), replicas_.end(), [this](const auto& r) {
    return r.get() != replicas_[log_.leader()].get() && r->caught_up() && r->server_runs() &&
           r->behind_ns() <= control::kNearMs * kMs;
  });
}

void ReplicaWorld::check_status() {
  const unsigned leader = log_.leader();
  const bool waits = now_ns_ < settings_.busy_ns && serving() &&
                     (leader == kNone || !server_stopped(leader) || another_is_near());
  if (!waits || now_ns_ - answered_ns_ < control::kNearMs * kMs || !status().serving) {
    honest_ns_ = now_ns_;
  } else if (now_ns_ - honest_ns_ > kHonestNs) {
    violate("STATUS: serving, and a client waits; " + describe());
  }
}

// The cost of a loss, or of a stopped server.  Inputs that wait for a checkpoint do not count, nor
// do clients that are refused while a server is on trial.
void ReplicaWorld::check_waits() {
  const bool waits = now_ns_ < settings_.busy_ns && serving();
  const unsigned leader = log_.leader();
  const bool full = leader != kNone && replicas_[leader]->log_is_full();
  const bool changes =
      std::any_of(replicas_.begin(), replicas_.end(), [](const auto& r) { return r->changes(); });
  if (!waits || full || changes || answered_ns_ > lost_ns_) lost_ns_ = 0;
  if (lost_ns_ != 0 && now_ns_ - lost_ns_ > kLossNs + 3 * settings_.compute_ns) {
    violate("COSTLESS: a loss that status allowed costs clients too long; " + describe());
  }
  if (!waits || changes || now_ns_ >= std::max(slow_until_ns_, stopped_until_ns_))
    stalled_since_ns_ = 0;
  if (full || stalled_since_ns_ == 0 || now_ns_ - stalled_since_ns_ <= kStalledNs) return;
  const std::int64_t late_ns = leader == kNone ? 0 : replicas_[leader]->behind_ns();
  if (late_ns > kStalledNs || now_ns_ - answered_ns_ > kStalledNs) {
    violate("STANDS: a leader's stopped server costs clients too long; " + describe());
  }
}

// All have learned of the dump that was published since (TIER-1).
void ReplicaWorld::check_tier() {
  const bool since = refused_alone_ && dumped_ns_ > refuses_until_ns_;
  if (!since || now_ns_ - dumped_ns_ < kHonestNs) return;
  for (const auto& r : replicas_) {
    if (r->up() && !r->refusal().empty()) violate("TIER: " + describe());
  }
}

// Each replica crashes at the same entry, however often it is started.
void ReplicaWorld::check_exit() {
  if (exited_ns_ == 0 || now_ns_ - exited_ns_ <= kExitNs) return;
  // No replica can reach that entry.
  result_.given_up = beyond_repair() || (settings_.hosts && !log_.has_majority());
  if (!result_.given_up) violate("EXIT: " + describe());
}

// --- after the last fault ----------------------------------------------------------------------

// No server runs, and there is no place where one could begin: checkpoints were damaged or belong
// to a replica that differed, the log was given up, as node.log reported, or hosts lost what only
// their memory held.
bool ReplicaWorld::beyond_repair() const {
  if (log_.is_lost()) return true;
  bool damaged = false;
  std::vector<StoredCheckpoint> whole;
  for (unsigned host = 0; host < hosts_.directories().size(); ++host) {
    if (settings_.hosts && left_[host]) continue;
    for (const StoredCheckpoint& c : hosts_.directories()[host]) {
      const bool usable = !c.damaged && c.starts;
      damaged = damaged || !usable;
      if (usable) whole.push_back(c);
    }
  }
  const auto can_begin = [&](const Acceptor& a) {
    if (a.last < log_.committed()) return false;
    return a.first <= 1 || std::any_of(whole.begin(), whole.end(),
                                       [&](const auto& c) { return c.at + 1 >= a.first; });
  };
  for (unsigned id = 0; id < replicas(); ++id) {
    const bool lives = replicas_[id]->has_server() && !log_.acceptor(id).lacks;
    if (lives || can_begin(log_.acceptor(id))) return false;
  }
  return damaged || log_given_up_ || differed_ || (settings_.hosts && !settings_.on_disk);
}

void ReplicaWorld::check_calm() {
  const std::int64_t calm = now_ns_ - calm_ns_;
  if (calm >= kLeaderNs && beyond_repair()) {
    result_.given_up = true;
    return;
  }
  if (now_ns_ - std::max(led_ns_, calm_ns_) >= kLeaderNs) return violate("LEADER: " + describe());
  if (now_ns_ - std::max(answered_ns_, calm_ns_) >= kServedNs) {
    result_.given_up = log_.cannot_commit();
    if (result_.given_up) return;
    return violate("SERVED: no client is answered; " + describe());
  }
  if (calm < kWholeNs) return;
  if (!all_restored()) return violate("WHOLE: " + describe());
  if (!clients_done()) violate(clients_->missing() + "; " + describe());
}

std::string ReplicaWorld::describe() const {
  std::string text = "leader " + (log_.leader() == kNone ? "none" : std::to_string(log_.leader())) +
                     ", committed " + std::to_string(log_.committed());
  for (const auto& r : replicas_) text += "; " + r->describe();
  text += "; checkpoints:";
  for (const auto& directory : hosts_.directories()) {
    for (const StoredCheckpoint& c : directory) {
      text += " " + std::to_string(c.at) + "/r" + std::to_string(c.by) + (c.damaged ? "!" : "") +
              (c.distrusted() ? "?" : "");
    }
  }
  return text;
}

}  // namespace crane::replica::sim
