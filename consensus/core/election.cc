// SPDX-License-Identifier: Apache-2.0
// Who leads: pull-score on the leader's heartbeat, pre-vote, back-off, stepping down (DESIGN C6).
#include <algorithm>
#include <cstring>

#include "consensus/core/replica.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

bool Replica::leader_alive() const { return leader_ != kNoReplica && score_.alive(); }

void Replica::note_view(View view) { view_max_ = std::max(view_max_, view); }

void Replica::follow(ReplicaId leader) {
  leader_ = leader;
  score_.reset();
  heartbeat_seen_ = 0;
  heartbeat_period_ns_ = config_.period_active_ns;
  heartbeat_moved_ns_ = now_.now_ns;
  read_at_ns_ = now_.now_ns + config_.period_active_ns;
  ++read_epoch_;
  read_outstanding_ = false;
  campaign_at_ns_ = 0;
  prevote_view_ = View{0};
}

void Replica::tick_follower() {
  const std::uint64_t now = now_.now_ns;
  if (prevote_view_ != View{0} && now >= deadline_phase_ns_) {
    prevote_view_ = View{0};
    ++lost_races_;
    plan_campaign(true);
  }
  if (leader_ != kNoReplica && now >= read_at_ns_) {
    // A reader that itself ran late has measured itself, not the leader.
    const std::uint64_t lateness = (now - read_at_ns_) / config_.period_active_ns;
    const bool late = lateness > 0;
    if (late) score_.reader_late(lateness);
    if (read_outstanding_) {
      // Log bytes that land show the leader's life as a heartbeat does, and have another link.
      const bool writes = now - landed_ns_ < 2 * config_.period_active_ns;
      if (!late && !writes && score_.is_late(now - read_sent_ns_)) score_.unanswered();
    } else {
      read_outstanding_ = true;
      read_late_ = late;
      read_sent_ns_ = now;
      emit(ReadCell{leader_, kStatusCell, token(OpKind::kReadHeartbeat, leader_)});
    }
    const bool fast = score_.streak() > 0 || active();
    read_at_ns_ = now + (fast ? config_.period_active_ns : heartbeat_period_ns_);
  }
  if (leader_alive() || prevote_view_ != View{0}) return;
  note_lost_leader(ElectionCause::kSuspicion);
  if (campaign_at_ns_ == 0) {
    plan_campaign(false);
  } else if (now >= campaign_at_ns_) {
    campaign_at_ns_ = 0;
    start_prevote(false);
  }
}

void Replica::on_heartbeat(const Completion& e) {
  read_outstanding_ = false;
  if (!following() || leader_ == kNoReplica) return;
  Cell cell{};
  if (!e.ok || e.data.size() != sizeof cell) {
    if (!read_late_) score_.miss();
  } else {
    std::memcpy(cell.data(), e.data.data(), sizeof cell);
    if (!read_late_) score_.answered(now_.now_ns - read_sent_ns_);
    if (cell[kLeadingView] == 0) {  // it stepped down, or started again
      leader_ = kNoReplica;
      note_lost_leader(ElectionCause::kStepDown);
    } else if (cell[kHeartbeat] != heartbeat_seen_) {
      heartbeat_seen_ = cell[kHeartbeat];
      heartbeat_moved_ns_ = now_.now_ns;
      heartbeat_period_ns_ =
          std::clamp(cell[kPeriodNs], config_.period_active_ns, config_.period_idle_ns);
      score_.hit();
    } else if (now_.now_ns - heartbeat_moved_ns_ > heartbeat_period_ns_ * 3 / 2 && !read_late_) {
      // Noise of a loaded machine, for a while; not of a leader that is stopped or spins.
      const bool excused =
          e.starved && now_.now_ns - heartbeat_moved_ns_ < heartbeat_period_ns_ + kStarvedMaxNs;
      if (!excused) score_.miss();
      read_at_ns_ = std::min(read_at_ns_, now_.now_ns + config_.period_active_ns);
    }
  }
  if (leader_alive()) {
    campaign_at_ns_ = 0;
    if (election_.view == promised_) lost_leader_ns_ = 0;  // suspected for nothing
  } else if (campaign_at_ns_ == 0 && prevote_view_ == View{0}) {
    plan_campaign(false);
  }
}

// The smallest id goes first (Mu 5.1), the others a slot later each; who lost a race waits at
// random.  With a slow disk a race is as long as a promise takes: who came sooner would join it.
void Replica::plan_campaign(bool lost_before) {
  if (!fit_ || role_ != Role::kFollower) return;
  std::uint64_t rank = 0;
  for (std::uint8_t i = 0; i < value(self()); ++i) {
    if (peers_[i].up && ReplicaId{i} != leader_ && members().voter(ReplicaId{i})) ++rank;
  }
  std::uint64_t delay = rank * race_ns();
  if (rank > 0) delay += now_.random % (config_.slot_ns / 2 + 1);
  if (lost_before) {
    const std::uint64_t slots = std::uint64_t{2} << std::min(lost_races_, kBackoffPowerMax);
    delay = config_.slot_ns + now_.random % std::max(slots * config_.slot_ns,
                                                     std::min(slots, kBackoffRacesMax) * race_ns());
  }
  if (alone() && !lost_before) delay = 0;
  campaign_at_ns_ = std::max<std::uint64_t>(now_.now_ns + delay, 1);
}

// Where answers always take longer than was waited for (a slow disk, a long way), the same patience
// again would lose every race.  The others' disks are taken to be like the own one.
std::uint64_t Replica::patience_ns() const {
  if (mutant(Mutant::kConstantPatience)) return config_.ask_timeout_ns;
  const unsigned power = std::min(lost_races_, kPatiencePowerMax);
  return std::max(config_.ask_timeout_ns << power, 2 * promise_took_ns_);
}

void Replica::start_prevote(bool transfer) {
  if (!fit_ || role_ != Role::kFollower) return;
  transfer_ = transfer;
  prevote_view_ = make_view(view_counter(std::max(view_max_, promised_)) + 1, self());
  std::fill(prevote_yes_.begin(), prevote_yes_.end(), false);
  prevote_yes_[value(self())] = true;
  deadline_phase_ns_ = now_.now_ns + patience_ns();
  if (alone()) return campaign(prevote_view_);
  Message m = message(MessageType::kPreVote);
  m.view = prevote_view_;
  m.transfer = transfer ? 1 : 0;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    if (ReplicaId{i} != self() && members().voter(ReplicaId{i})) send(ReplicaId{i}, m);
  }
}

void Replica::on_prevote(const Message& m) {
  const ReplicaId from{m.from};
  const bool sticky =
      leader_alive() && leader_ != from && m.transfer == 0 && !mutant(Mutant::kNoStickiness);
  // L1: who needs bytes that left the rings cannot lead, and would keep those from it who can.
  const bool lags = m.last < end_.last && m.commit_pos + ring_.ring_bytes() < high_pos_;
  if (phase_ != Phase::kNone || m.view <= promised_ || view_owner(m.view) != from || sticky ||
      lags) {
    if (lags && !sticky && phase_ == Phase::kNone) send(from, message(MessageType::kBehind));
    return refuse(from, m.view);
  }
  // The own campaign, if one is planned, waits until this one may be decided.
  if (campaign_at_ns_ != 0) {
    const std::uint64_t decided_ns = now_.now_ns + promise_took_ns_;
    campaign_at_ns_ = std::max(campaign_at_ns_, decided_ns + now_.random % (promise_took_ns_ + 1));
  }
  Message yes = message(MessageType::kPreVoteYes);
  yes.view = m.view;
  send(from, yes);
}

void Replica::on_prevote_yes(const Message& m) {
  if (role_ != Role::kFollower || prevote_view_ == View{0} || m.view != prevote_view_) return;
  prevote_yes_[m.from] = true;
  const auto yes = [this](ReplicaId id) { return prevote_yes_[value(id)]; };
  if (members().quorum_of(yes)) campaign(prevote_view_);
}

void Replica::on_refuse(const Message& m) {
  note_view(m.promised);
  const ReplicaId hint{m.leader};
  if (role_ == Role::kFollower && m.view == prevote_view_ && m.view != View{0}) {
    if (ReplicaId{m.from} == leader_ && hint == leader_ && m.promised == promised_) {
      return believe_leader();
    }
    const bool usable = m.leader < config_.replicas && hint != self() && hint != leader_;
    // Who is refused is not slow to be answered: it may soon ask again.
    deadline_phase_ns_ = std::min(deadline_phase_ns_, now_.now_ns + config_.ask_timeout_ns);
    if (leader_ != kNoReplica || !usable || !peers_[m.leader].up) return;
    follow(hint);
    // A process that was started again in the view it knew: nothing else would tell its owner.
    if (repaired_ && view_owner(promised_) == hint) tell_role(leader_);
    return;
  }
  if (phase_ == Phase::kNone || m.view != promised_ || m.promised <= promised_) return;
  // Its promise is beyond our view: only a newer view can have it back.
  ++lost_races_;
  step_down();
  plan_campaign(true);
}

// The suspected leader itself refused to be replaced, so it lives, and leads.
void Replica::believe_leader() {
  prevote_view_ = View{0};
  campaign_at_ns_ = 0;
  lost_races_ = 0;
  if (election_.view == promised_) lost_leader_ns_ = 0;
  score_.answered_after_all();
}

void Replica::on_transfer(const Message& m) {
  const ReplicaId from{m.from};
  if (role_ != Role::kFollower || m.view != promised_ || from != view_owner(promised_)) return;
  leader_ = kNoReplica;
  campaign_at_ns_ = 0;
  note_lost_leader(ElectionCause::kTransfer);
  start_prevote(true);
}

void Replica::campaign(View view) {
  CRANE_ASSERT(role_ == Role::kFollower && view_owner(view) == self());
  prevote_view_ = View{0};
  campaign_at_ns_ = 0;
  leader_ = kNoReplica;
  if (view <= promised_) return plan_campaign(true);
  promise(view);
  set_role(Role::kCandidate, kNoReplica);
  set_phase(Phase::kFencing);
  // C1: connections of older views go before anybody is asked for this one.
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    Peer& p = peers_[i];
    if (p.connected) emit(CloseLog{ReplicaId{i}});
    p.connected = p.granted = false;
    ++p.epoch;
    p.retry_power = 0;
    p.durable = Index{0};
    set_state(p, PeerState::kIdle);
  }
  heartbeat_period_ns_ = config_.period_active_ns;
  beat_at_ns_ = now_.now_ns + config_.period_active_ns;
  ++heartbeat_;
  publish_status();
  deadline_phase_ns_ = now_.now_ns + patience_ns();
  settle_grant();
}

void Replica::set_phase(Phase phase) { move(phase_, phase); }

void Replica::tick_candidate() {
  if (phase_ == Phase::kLeading) return;
  if (stores_promise()) return;  // the own disk answers, or is reported
  if (now_.now_ns >= deadline_phase_ns_) {
    ++lost_races_;
    step_down();
    plan_campaign(true);
  } else if (phase_ == Phase::kAdopting) {
    read_adopt();  // it may have waited for room
  }
}

// C8: whoever led hears it at once.
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
  transfer_ = false;
  source_ = kNoReplica;
  adopt_outstanding_ = false;
  transfer_to_ = kNoReplica;
  note_lost_leader(ElectionCause::kStepDown);
  publish_status();
  set_role(Role::kFollower, kNoReplica);
  members_changed();
}

void Replica::note_lost_leader(ElectionCause cause) {
  if (lost_leader_ns_ != 0) return;
  lost_leader_ns_ = now_.now_ns;
  lost_leader_why_ = cause;
}

void Replica::note_elected() {
  lost_races_ = 0;
  if (election_.view == promised_) return;
  const std::uint64_t since = lost_leader_ns_ == 0 ? now_.now_ns : lost_leader_ns_;
  election_ = {promised_, now_.now_ns, now_.now_ns - since, lost_leader_why_};
  lost_leader_ns_ = 0;
}

}  // namespace crane::consensus::core
