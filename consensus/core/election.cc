// SPDX-License-Identifier: Apache-2.0
// Leader election: pull-score on the leader's heartbeat, pre-vote, back-off, step-down (DESIGN C6).
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "consensus/core/replica.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

bool Replica::leader_alive() const { return leader_ != kNoReplica && score_.alive(); }

void Replica::note_view(View view) { view_max_ = std::max(view_max_, view); }

void Replica::follow(ReplicaId leader) {
  leader_ = leader;
  score_.reset();
  heartbeat_.seen = 0;
  heartbeat_.period_ns = config_.period_active_ns;
  heartbeat_.moved_ns = now_.now_ns;
  heartbeat_.read_at_ns = now_.now_ns + config_.period_active_ns;
  ++heartbeat_.read_epoch;
  heartbeat_.read_outstanding = false;
  seeking_.campaign_at_ns = 0;
  seeking_.prevote_view = View{0};
  seeking_.yields = 0;
  seeking_.yielded_to = Index{0};
  seeking_.abdicated = false;
  seeking_.refused.reset();
}

void Replica::tick_follower() {
  const std::uint64_t now = now_.now_ns;
  if (seeking_.prevote_view != View{0} && now >= seeking_.deadline_ns) {
    seeking_.prevote_view = View{0};
    ++seeking_.lost_races;
    plan_campaign(true);
  }
  if (leader_ != kNoReplica && now >= heartbeat_.read_at_ns) {
    // A reader that ran late has measured its own delay, not the leader's.
    const std::uint64_t lateness = (now - heartbeat_.read_at_ns) / config_.period_active_ns;
    const bool late = lateness > 0;
    if (late) score_.reader_late(lateness);
    if (heartbeat_.read_outstanding) {
      // Log bytes that land prove the leader alive as a heartbeat does, and use another link.
      const bool writes = now - heartbeat_.landed_ns < 2 * config_.period_active_ns;
      if (!late && !writes && score_.is_late(now - heartbeat_.read_sent_ns)) score_.unanswered();
    } else {
      heartbeat_.read_outstanding = true;
      heartbeat_.read_late = late;
      heartbeat_.read_sent_ns = now;
      emit(ReadCell{leader_, kStatusCell, token(OpKind::kReadHeartbeat, leader_)});
    }
    const bool fast = score_.streak() > 0 || active();
    heartbeat_.read_at_ns = now + (fast ? config_.period_active_ns : heartbeat_.period_ns);
  }
  if (leader_alive() || seeking_.prevote_view != View{0}) return;
  note_lost_leader(ElectionCause::kSuspicion);
  if (seeking_.campaign_at_ns == 0) {
    suspect();
  } else if (now >= seeking_.campaign_at_ns) {
    seeking_.campaign_at_ns = 0;
    start_prevote(false);
  }
}

void Replica::on_heartbeat(const Completion& e) {
  heartbeat_.read_outstanding = false;
  if (!following() || leader_ == kNoReplica) return;
  Cell cell{};
  if (!e.ok || e.data.size() != sizeof cell) {
    if (!heartbeat_.read_late) score_.miss();
  } else {
    std::memcpy(cell.data(), e.data.data(), sizeof cell);
    if (!heartbeat_.read_late) score_.answered(now_.now_ns - heartbeat_.read_sent_ns);
    if (cell[kLeadingView] == 0) {  // it stepped down or restarted
      leader_ = kNoReplica;
      note_lost_leader(ElectionCause::kStepDown);
    } else if (cell[kHeartbeat] != heartbeat_.seen) {
      heartbeat_.seen = cell[kHeartbeat];
      heartbeat_.moved_ns = now_.now_ns;
      heartbeat_.period_ns =
          std::clamp(cell[kPeriodNs], config_.period_active_ns, config_.period_idle_ns);
      score_.hit();
    } else if (e.process == PeerProcess::kStopped && !heartbeat_.read_late) {
      score_.stopped();
      heartbeat_.read_at_ns =
          std::min(heartbeat_.read_at_ns, now_.now_ns + config_.period_active_ns);
    } else if (now_.now_ns - heartbeat_.moved_ns > heartbeat_.period_ns * 3 / 2 &&
               !heartbeat_.read_late) {
      // A loaded machine excuses a miss for a while, but not that of a leader that is stopped or
      // spins.
      const bool excused = e.process == PeerProcess::kStarved &&
                           now_.now_ns - heartbeat_.moved_ns < heartbeat_.period_ns + kStarvedMaxNs;
      if (!excused) score_.miss();
      heartbeat_.read_at_ns =
          std::min(heartbeat_.read_at_ns, now_.now_ns + config_.period_active_ns);
    }
  }
  if (leader_alive()) {
    seeking_.campaign_at_ns = 0;
    note_led();
  } else if (seeking_.campaign_at_ns == 0 && seeking_.prevote_view == View{0}) {
    suspect();
  }
}

// The leader is lost.  This replica answers again a pre-vote that it refused because the leader
// seemed alive: the sender noticed a little earlier, and would otherwise wait for its full
// time-out.
void Replica::suspect() {
  plan_campaign(false);
  if (const auto asked = std::exchange(seeking_.refused, std::nullopt)) on_prevote(*asked);
}

// The smallest id goes first (Mu 5.1), each other replica a slot later; after a lost race the delay
// is random.  With a slow disk a race takes as long as a promise; a shorter delay would join the
// race under way.
void Replica::plan_campaign(bool lost_before) {
  if (!server_healthy_ || role_ != Role::kFollower) return;
  std::uint64_t rank = 0;
  for (std::uint8_t i = 0; i < value(self()); ++i) {
    if (peers_[i].up && ReplicaId{i} != leader_ && members().voter(ReplicaId{i})) ++rank;
  }
  std::uint64_t delay = rank * race_ns();
  if (rank > 0) delay += now_.random % (config_.slot_ns / 2 + 1);
  if (lost_before) {
    const std::uint64_t slots = std::uint64_t{2} << std::min(seeking_.lost_races, kBackoffPowerMax);
    delay = config_.slot_ns + now_.random % std::max(slots * config_.slot_ns,
                                                     std::min(slots, kBackoffRacesMax) * race_ns());
  }
  // Clients would wait for a lagging server; another one may serve at once.  The lagging server
  // catches up meanwhile, faster than it fell behind.
  delay += std::min(lag_in_election().ns / 2, config_.lag_most_ns);
  if (alone() && !lost_before) delay = 0;
  seeking_.campaign_at_ns = std::max<std::uint64_t>(now_.now_ns + delay, 1);
}

// If answers always take longer than the time-out (a slow disk, a long distance), the same time-out
// would lose every race.  The others' disks are assumed to be like its own.
std::uint64_t Replica::ask_timeout_ns() const {
  if (mutant(Mutant::kConstantTimeout)) return config_.ask_timeout_ns;
  const unsigned power = std::min(seeking_.lost_races, kPatiencePowerMax);
  return std::max(config_.ask_timeout_ns << power, 2 * durable_.promise_took_ns);
}

void Replica::start_prevote(bool transfer) {
  if (!server_healthy_ || role_ != Role::kFollower) return;
  seeking_.transfer = transfer;
  seeking_.prevote_view = make_view(view_counter(std::max(view_max_, promised_)) + 1, self());
  std::fill(seeking_.prevote_yes.begin(), seeking_.prevote_yes.end(), false);
  seeking_.prevote_yes[value(self())] = true;
  seeking_.deadline_ns = now_.now_ns + ask_timeout_ns();
  if (alone()) return campaign(seeking_.prevote_view);
  Message m = message(MessageType::kPreVote);
  m.view = seeking_.prevote_view;
  m.transfer = transfer ? 1 : 0;
  m.lag_ns = lag_in_election().ns;
  m.ran = lag_in_election().ran;
  m.sequence = seeking_.yields;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    if (ReplicaId{i} != self() && members().voter(ReplicaId{i})) send(ReplicaId{i}, m);
  }
}

void Replica::on_prevote(const Message& m) {
  const ReplicaId from{m.from};
  const bool sticky =
      leader_alive() && leader_ != from && m.transfer == 0 && !mutant(Mutant::kNoStickiness);
  // L1: a replica that needs bytes that left the rings cannot lead, and would block those that can.
  const bool lags = m.last < end_.last && m.commit_pos + ring_.ring_bytes() < high_pos_;
  if (phase_ != Phase::kNone || m.view <= promised_ || view_owner(m.view) != from || sticky ||
      lags) {
    if (lags && !sticky && phase_ == Phase::kNone) send(from, message(MessageType::kBehind));
    if (sticky) seeking_.refused = m;
    return refuse(from, m.view);
  }
  const bool sooner = serves_sooner_than(m);
  if (sooner || yielded_to_further_one(m)) {
    Message yield = message(MessageType::kYield);
    yield.view = m.view;
    yield.ran = sooner ? ran_in_election() : seeking_.yielded_to;
    send(from, yield);
    if (sooner && seeking_.prevote_view == View{0}) start_prevote(false);
    return;
  }
  // This replica's campaign, if one is planned, waits until this one may be decided.
  if (seeking_.campaign_at_ns != 0) {
    const std::uint64_t decided_ns = now_.now_ns + durable_.promise_took_ns;
    seeking_.campaign_at_ns = std::max(seeking_.campaign_at_ns,
                                       decided_ns + now_.random % (durable_.promise_took_ns + 1));
  }
  Message yes = message(MessageType::kPreVoteYes);
  yes.view = m.view;
  send(from, yes);
}

void Replica::on_prevote_yes(const Message& m) {
  if (role_ != Role::kFollower || seeking_.prevote_view == View{0} ||
      m.view != seeking_.prevote_view)
    return;
  seeking_.prevote_yes[m.from] = true;
  const auto yes = [this](ReplicaId id) { return seeking_.prevote_yes[value(id)]; };
  if (members().quorum_of(yes)) campaign(seeking_.prevote_view);
}

// C6: of two replicas with the whole log, the one whose server has run more leads, because clients
// wait for what the leader's server has still to run.  A candidate yields kYieldsMost times; then a
// server that is behind is better than none: the other replica may be gone, or reach no majority.
bool Replica::serves_sooner_than(const Message& candidate) const {
  const bool asks = is_to_yield(candidate);
  const bool may_lead = server_healthy_ && role_ == Role::kFollower && end_.last >= candidate.last;
  return asks && may_lead && ran_in_election() > candidate.ran;
}

// This replica yielded to one that is about to campaign: its vote must not elect a third one.
bool Replica::yielded_to_further_one(const Message& candidate) const {
  return is_to_yield(candidate) && seeking_.yielded_to > candidate.ran;
}

bool Replica::is_to_yield(const Message& candidate) {
  return candidate.lag_ns != 0 && candidate.transfer == 0 && candidate.sequence < kYieldsMost;
}

// A leader that abdicated is the last choice until another one leads.
ServerLagging Replica::lag_in_election() const {
  return seeking_.abdicated ? ServerLagging{2 * config_.lag_most_ns, Index{0}} : server_lag_;
}

// A server that is near the log's end ranks above all that lag.
Index Replica::ran_in_election() const {
  const ServerLagging own = lag_in_election();
  return own.ns == 0 ? Index{std::numeric_limits<std::uint64_t>::max()} : own.ran;
}

void Replica::on_yield(const Message& m) {
  note_view(m.promised);
  if (role_ != Role::kFollower || seeking_.prevote_view == View{0} ||
      m.view != seeking_.prevote_view)
    return;
  seeking_.prevote_view = View{0};
  ++seeking_.yields;
  seeking_.yielded_to = std::max(seeking_.yielded_to, m.ran);
  seeking_.campaign_at_ns = now_.now_ns + race_ns() + config_.ask_timeout_ns;
}

void Replica::on_refuse(const Message& m) {
  note_view(m.promised);
  const ReplicaId hint{m.leader};
  if (role_ == Role::kFollower && m.view == seeking_.prevote_view && m.view != View{0}) {
    if (ReplicaId{m.from} == leader_ && hint == leader_ && m.promised == promised_) {
      return believe_leader();
    }
    const bool usable = m.leader < config_.replicas && hint != self() && hint != leader_;
    // A refusal is sent at once, because the candidate may ask again soon.
    seeking_.deadline_ns = std::min(seeking_.deadline_ns, now_.now_ns + config_.ask_timeout_ns);
    if (leader_ != kNoReplica || !usable || !peers_[m.leader].up) return;
    follow(hint);
    // A process that restarted in the view it knew: no other event reports the leader to its owner.
    if (repaired_ && view_owner(promised_) == hint) {
      note_elected();
      report_role(leader_);
    }
    return;
  }
  if (phase_ == Phase::kNone || m.view != promised_ || m.promised <= promised_) return;
  // Its promise is beyond our view: only a newer view can get its grant.
  ++seeking_.lost_races;
  step_down();
  plan_campaign(true);
}

// The suspected leader itself refused to be replaced, so it is alive and leads.
void Replica::believe_leader() {
  seeking_.prevote_view = View{0};
  seeking_.campaign_at_ns = 0;
  seeking_.lost_races = 0;
  note_led();
  score_.answered_after_all();
}

void Replica::on_transfer(const Message& m) {
  const ReplicaId from{m.from};
  if (role_ != Role::kFollower || m.view != promised_ || from != view_owner(promised_)) return;
  leader_ = kNoReplica;
  seeking_.campaign_at_ns = 0;
  note_lost_leader(ElectionCause::kTransfer);
  start_prevote(true);
}

void Replica::campaign(View view) {
  CRANE_ASSERT(role_ == Role::kFollower && view_owner(view) == self());
  seeking_.prevote_view = View{0};
  seeking_.campaign_at_ns = 0;
  leader_ = kNoReplica;
  if (view <= promised_) return plan_campaign(true);
  promise(view);
  set_role(Role::kCandidate, kNoReplica);
  set_phase(Phase::kFencing);
  candidacy_.enter();
  // C1: connections of older views are closed before any replica is asked for this one.
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    Peer& p = peers_[i];
    if (p.connected) emit(CloseLog{ReplicaId{i}});
    p.connected = p.granted = false;
    ++p.epoch;
    p.retry_power = 0;
    p.durable = Index{0};
    set_state(p, PeerState::kIdle);
  }
  heartbeat_.period_ns = config_.period_active_ns;
  heartbeat_.own_at_ns = now_.now_ns + config_.period_active_ns;
  ++heartbeat_.own;
  publish_status();
  seeking_.deadline_ns = now_.now_ns + ask_timeout_ns();
  settle_grant();
}

void Replica::set_phase(Phase phase) { move(phase_, phase); }

void Replica::tick_candidate() {
  if (phase_ == Phase::kLeading) return;
  if (stores_promise()) return;  // this replica's disk answers, or its error is reported
  if (now_.now_ns >= seeking_.deadline_ns) {
    ++seeking_.lost_races;
    step_down();
    plan_campaign(true);
  } else if (phase_ == Phase::kAdopting) {
    read_adopt();  // the read may have waited for room
  }
}

// C8: a former leader reports this at once.
void Replica::step_down() {
  CRANE_ASSERT(phase_ != Phase::kNone);
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    Peer& p = peers_[i];
    if (p.connected) emit(CloseLog{ReplicaId{i}});
    p.connected = p.granted = p.throttled = false;
    ++p.epoch;
    set_state(p, PeerState::kIdle);
  }
  set_phase(Phase::kNone);
  leader_ = kNoReplica;
  seeking_.transfer = false;
  candidacy_.leave();
  reign_.leave();
  membership_.transfer_to = kNoReplica;
  note_lost_leader(ElectionCause::kStepDown);
  publish_status();
  set_role(Role::kFollower, kNoReplica);
  members_changed();
}

void Replica::note_lost_leader(ElectionCause cause) {
  if (seeking_.lost_ns != 0) return;
  seeking_.lost_ns = now_.now_ns;
  seeking_.lost_why = cause;
}

void Replica::note_elected() {
  seeking_.lost_races = 0;
  seeking_.yields = 0;
  seeking_.yielded_to = Index{0};
  seeking_.abdicated = false;
  note_led();
}

// A replica that leads, or follows with a repaired log, has a leader.  A loss that was noted before
// is over, even if no election ended it; the next loss gets its own time and cause.
void Replica::note_led() {
  if (following() && (!repaired_ || leader_ != view_owner(promised_))) return;
  if (seeking_.last.view != promised_) {
    const std::uint64_t since = seeking_.lost_ns == 0 ? now_.now_ns : seeking_.lost_ns;
    seeking_.last = {promised_, now_.now_ns, now_.now_ns - since, seeking_.lost_why};
  }
  seeking_.lost_ns = 0;
}

}  // namespace crane::consensus::core
