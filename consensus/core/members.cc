// SPDX-License-Identifier: Apache-2.0
// Members of the group: CONFIG entries in the log, join, leave, leader transfer (DESIGN C7).
#include <algorithm>

#include "consensus/core/replica.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

// --- the list ------------------------------------------------------------------------------------

// CORE-M3: a CONFIG is in force from when the log holds it, ...
void Replica::note_config(const EntryHeader& h, std::span<const std::byte> payload) {
  if (Index{h.index} <= membership_.configs.back().at.index) return;
  const auto members = Members::decode(payload);
  if (!members) return;  // the bytes changed since their CRC was checked: they are scanned again
  membership_.configs.push_back({{View{h.view}, Index{h.index}}, *members});
  recount_held();
  membership_.was_member |= members->member(self());
}

// ... until it is truncated.
void Replica::forget_configs(Index after) {
  while (changing() && membership_.configs.back().at.index > after) membership_.configs.pop_back();
}

void Replica::settle_configs() {
  std::size_t newest = 0;
  while (newest + 1 < membership_.configs.size() &&
         membership_.configs[newest + 1].at.index <= commit_.last.index) {
    ++newest;
  }
  if (newest == 0) return;
  membership_.configs.erase(membership_.configs.begin(),
                            membership_.configs.begin() + static_cast<std::ptrdiff_t>(newest));
  ring_.save_config(membership_.configs.front());
  emit(MembersChange{});
}

// Adapts role and peers to the members in force.
void Replica::members_changed() {
  if (following()) {
    const Role right = votes() ? Role::kFollower : Role::kLearner;
    if (role_ == right) return;
    seeking_.campaign_at_ns = 0;
    seeking_.prevote_view = View{0};
    membership_.join_at_ns = now_.now_ns;
    membership_.join_power = 0;
    set_role(right, leader_);
  } else if (phase_ == Phase::kLeading) {
    for (std::uint8_t i = 0; i < config_.replicas; ++i) {
      Peer& p = peers_[i];
      if (p.state == PeerState::kIdle || is(ReplicaId{i}, p.grant.incarnation)) continue;
      lose_peer(ReplicaId{i});
    }
  }
}

bool Replica::is(ReplicaId id, std::uint32_t incarnation) const {
  return members().admits(id, incarnation) ||
         (mutant(Mutant::kAmnesiacVoter) && members().member(id));
}

// CORE-M5: the replicas that granted are a majority of the members in force.
bool Replica::granted_quorum() const {
  const Members& m = mutant(Mutant::kStaleConfig) ? candidacy_->asked : members();
  const auto holds = [&](ReplicaId id) {
    if (id == self()) return m.admits(id, config_.incarnation) || is(id, config_.incarnation);
    if (value(id) >= peers_.size() || !peers_[value(id)].granted) return false;
    const std::uint32_t incarnation = peers_[value(id)].grant.incarnation;
    return m.admits(id, incarnation) || mutant(Mutant::kAmnesiacVoter);
  };
  if (mutant(Mutant::kLearnerVotes)) {
    const auto granted = [](const Peer& p) { return p.granted; };
    const auto n = std::count_if(peers_.begin(), peers_.end(), granted);
    return static_cast<std::size_t>(n) + 1 >= m.quorum();
  }
  return m.quorum_of(holds);
}

// --- which messages count ------------------------------------------------------------------------

// False if the message must be ignored.  The committed list and each later one may turn out to be
// in force, so messages of a member of any of them count.
bool Replica::screen(const Message& m) {
  if (m.type == MessageType::kJoin || m.type == MessageType::kNotMember) return true;
  if (m.config > config_at()) return true;  // its list of members is newer
  const auto known = [this](ReplicaId id, std::uint32_t incarnation) {
    return is(id, incarnation) ||
           std::any_of(membership_.configs.begin(), membership_.configs.end(),
                       [&](const ConfigAt& c) { return c.members.admits(id, incarnation); });
  };
  // C5: a replica that lost its memory has no vote until a CONFIG admits its new incarnation.
  if (!known(self(), config_.incarnation)) return false;
  if (known(ReplicaId{m.from}, m.incarnation)) return true;
  if (role_ == Role::kLeader && learns(ReplicaId{m.from})) {
    on_join(m);  // invited, but not yet aware that it was away: any message counts as a join
    return false;
  }
  const bool asks = m.type == MessageType::kPreVote || m.type == MessageType::kRequest;
  if (asks && !members().member(ReplicaId{m.from}) && !changing()) {
    send(ReplicaId{m.from}, message(MessageType::kNotMember));
  }
  return false;
}

// A learner that no leader writes to reports that it runs.
void Replica::ask_to_join() {
  if (now_.now_ns < membership_.join_at_ns) return;
  membership_.join_at_ns = now_.now_ns + (config_.retry_ns << membership_.join_power);
  membership_.join_power = std::min(membership_.join_power + 1, kRetryPowerMax);
  // A log that begins at a checkpoint counts as repaired before a leader has written to it; a kept
  // log may be of the previous incarnation.
  if (leader_alive() && repaired_ && end_.last.index > entrance_.began && admitted()) return;
  const Message m = message(MessageType::kJoin);
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    if (ReplicaId{i} != self()) send(ReplicaId{i}, m);
  }
}

// CORE-M7: an analysis replica fits only its own place, and no other replica fits there.
bool Replica::fits(ReplicaId id, const Message& m) const {
  const bool own = members().role(id) == MemberRole::kAnalysis;
  return own == (m.analysis != 0) || mutant(Mutant::kAddAsLearner);
}

void Replica::on_join(const Message& m) {
  const ReplicaId id{m.from};
  if (role_ != Role::kLeader) return;
  Peer& p = peers_[m.from];
  p.asks = m.incarnation;
  p.asks_analysis = m.analysis != 0;
  p.up = true;
  if (members().admits(id, m.incarnation)) {
    if (p.state == PeerState::kIdle) p.retry_at_ns = now_.now_ns;
    return;
  }
  if (changing()) return;  // it asks again
  if (!members().member(id) || !fits(id, m)) return send(id, message(MessageType::kNotMember));
  // The earlier incarnation is dead, because this one runs: one CONFIG removes its vote and admits
  // the new one as a learner.
  Members next = members();
  const MemberRole role = members().role(id);
  const bool voted = role == MemberRole::kVoter ||
                     (role == MemberRole::kAnalysis && mutant(Mutant::kAnalysisReturns));
  next.set(id, voted ? MemberRole::kReturning : role, m.incarnation);
  if (majority_follows_closely(next)) propose_config(next);
}

void Replica::on_not_member(const Message& m) {
  if (!following() || m.config < config_at() || !membership_.was_member) return;
  if (m.config == config_at() && members().admits(self(), config_.incarnation)) return;
  // Only a leader knows: another replica may have missed that this one was added again.
  if (m.leader != m.from) return ask_to_join();
  leave();
}

void Replica::leave() {
  if (phase_ != Phase::kNone) step_down();
  set_role(Role::kRemoved, kNoReplica);
}

// --- changes, by the leader ----------------------------------------------------------------------

bool Replica::caught_up(const Peer& p) const {
  return p.state == PeerState::kStreaming && p.acked_pos >= reign_->start_end_pos &&
         end_.pos - p.acked_pos <= ring_.ring_bytes() / kCaughtUpDivisor;
}

// A majority of `next` follows now, and closely: what it lacks cannot leave the ring before the
// CONFIG is committed, because inputs are at most half a ring ahead of the commit index.
bool Replica::majority_follows_closely(const Members& next) const {
  return next.quorum_of([this](ReplicaId id) {
    const Peer& p = peers_[value(id)];
    return id == self() || (p.state == PeerState::kStreaming &&
                            end_.pos - p.acked_pos <= ring_.ring_bytes() / kReserveDivisor);
  });
}

void Replica::propose_config(const Members& next) {
  const bool allowed = role_ == Role::kLeader && !changing();
  CRANE_ASSERT(allowed || mutant(Mutant::kConfigBeforeStart));  // CORE-M4
  CRANE_ASSERT(next.keeps_analysis(members()) || mutant(Mutant::kPromoteAnalysis) ||
               mutant(Mutant::kAnalysisReturns));  // CORE-M7
  const std::size_t size = next.encode(membership_.bytes);
  if (!room_for(entry_bytes(size), ring_.ring_bytes() / kReserveDivisor)) return;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    if (!members().member(ReplicaId{i}) || next.member(ReplicaId{i})) continue;
    peers_[i].retry_at_ns = now_.now_ns;  // to send it kNotMember
    peers_[i].retry_power = 0;
    peers_[i].asks = kAnyIncarnation;
  }
  if (commit_ == end_) reign_->progress_ns = now_.now_ns;
  append(kConfig, 0, 0, std::span<const std::byte>{membership_.bytes}.first(size));
}

Result<Index> Replica::change_members(const MemberChange& change, Now now) {
  const bool leads =
      role_ == Role::kLeader || (mutant(Mutant::kConfigBeforeStart) && phase_ == Phase::kLeading);
  if (!leads) return Error{Code::kNotLeader, 0, "change of members"};
  if (value(change.id) >= config_.replicas) {
    return Error{Code::kBadArgument, 0, "the group has no slot of this number"};
  }
  if (membership_.transfer_to != kNoReplica ||
      (changing() && !mutant(Mutant::kConfigBeforeStart))) {
    return Error{Code::kBusy, 0, "a change of members or leader is under way"};
  }
  now_ = now;
  Members next = members();
  const MemberRole role = next.role(change.id);
  const Peer& p = peers_[value(change.id)];
  switch (change.kind) {
    case MemberChange::Kind::kAdd:
    case MemberChange::Kind::kAddAnalysis: {
      if (role != MemberRole::kNone)
        return Error{Code::kBadArgument, 0, "the replica is already a member"};
      const bool analysis = change.kind == MemberChange::Kind::kAddAnalysis;
      const bool fits = p.asks_analysis == analysis || mutant(Mutant::kAddAsLearner);
      next.set(change.id, analysis ? MemberRole::kAnalysis : MemberRole::kLearner,
               fits ? p.asks : kAnyIncarnation);
      break;
    }
    case MemberChange::Kind::kPromote:
      if (role == MemberRole::kAnalysis && !mutant(Mutant::kPromoteAnalysis)) {
        return Error{Code::kBadArgument, 0, "an analysis replica never votes"};
      }
      if (role == MemberRole::kNone || role == MemberRole::kVoter) {
        return Error{Code::kBadArgument, 0, "the replica is not a learner"};
      }
      if (!caught_up(p)) return Error{Code::kBusy, 0, "the learner has not caught up"};
      next.set(change.id, MemberRole::kVoter, next.incarnation(change.id));
      if (mutant(Mutant::kSwapVoters)) {
        for (std::uint8_t i = config_.replicas; i-- > 0;) {
          if (ReplicaId{i} == self() || ReplicaId{i} == change.id) continue;
          if (!next.voter(ReplicaId{i})) continue;
          next.remove(ReplicaId{i});
          break;
        }
      }
      break;
    case MemberChange::Kind::kRemove:
      if (role == MemberRole::kNone)
        return Error{Code::kBadArgument, 0, "the replica is not a member"};
      next.remove(change.id);
      if (next.voters() == 0) return Error{Code::kBadArgument, 0, "the replica is the last voter"};
      if (role == MemberRole::kVoter && !majority_follows_closely(next))
        return Error{Code::kBusy, 0, "too few of the other voters follow closely"};
      break;
  }
  const Index before = end_.last.index;
  propose_config(next);
  deadline_ns_ = now_.now_ns;
  if (end_.last.index == before) return Error{Code::kBusy, 0, "the log is full"};
  return end_.last.index;
}

// The leader keeps asking a member that it does not write to for its permission ...
bool Replica::must_send_join(ReplicaId id) const {
  const Peer& p = peers_[value(id)];
  return phase_ == Phase::kLeading && id != self() && p.up && p.state == PeerState::kIdle &&
         members().admits(id, members().incarnation(id));
}

// ... and reports to a replica that is not a member that it was removed: it may have missed that.
bool Replica::must_send_not_member(ReplicaId id) const {
  return role_ == Role::kLeader && id != self() && peers_[value(id)].up && !members().member(id) &&
         !changing() && votes() && membership_.transfer_to == kNoReplica;
}

// Membership work that is due while this replica leads.
void Replica::tick_members() {
  if (membership_.transfer_to != kNoReplica) {
    finish_transfer();
    if (role_ != Role::kLeader) return;
    if (now_.now_ns < membership_.transfer_until_ns) return;
    membership_.transfer_to = kNoReplica;
    if (!votes() && !changing()) return leave();
  }
  if (changing()) return;
  if (!votes()) {
    if (membership_.leaves_at_ns == 0)
      membership_.leaves_at_ns = now_.now_ns + config_.removed_leader_ns;
    if (now_.now_ns < membership_.leaves_at_ns) return;
    const ReplicaId to = successor();
    return to == kNoReplica ? leave() : begin_transfer(to);
  }
  membership_.leaves_at_ns = 0;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    Peer& p = peers_[i];
    if (must_send_not_member(ReplicaId{i}) && now_.now_ns >= p.retry_at_ns) {
      p.retry_at_ns = now_.now_ns + (config_.retry_ns << p.retry_power);
      p.retry_power = std::min(p.retry_power + 1, kRetryPowerMax);
      send(ReplicaId{i}, message(MessageType::kNotMember));
    }
    if (changing() || members().role(ReplicaId{i}) != MemberRole::kReturning) continue;
    if (!caught_up(p)) continue;
    Members next = members();
    next.set(ReplicaId{i}, MemberRole::kVoter, next.incarnation(ReplicaId{i}));
    propose_config(next);
  }
}

// --- handing over --------------------------------------------------------------------------------

bool Replica::may_succeed(ReplicaId id) const {
  if (value(id) >= config_.replicas || !members().voter(id)) return false;
  const Peer& p = peers_[value(id)];
  return p.state == PeerState::kStreaming && p.up;
}

// The voter that follows best.
ReplicaId Replica::successor() const {
  ReplicaId best = kNoReplica;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    if (!may_succeed(ReplicaId{i})) continue;
    const Peer& p = peers_[i];
    if (best != kNoReplica && p.acked_pos <= peers_[value(best)].acked_pos) continue;
    best = ReplicaId{i};
  }
  return best;
}

Outcome Replica::transfer(ReplicaId to, Now now) {
  if (role_ != Role::kLeader) return Error{Code::kNotLeader, 0, "transfer"};
  if (value(to) < config_.replicas && members().role(to) == MemberRole::kAnalysis) {
    return Error{Code::kBadArgument, 0, "an analysis replica never leads"};
  }
  if (value(to) >= config_.replicas || to == self() || !members().voter(to)) {
    return Error{Code::kBadArgument, 0, "only another voter can lead"};
  }
  if (membership_.transfer_to != kNoReplica || changing()) {
    return Error{Code::kBusy, 0, "a change of members or leader is under way"};
  }
  now_ = now;
  if (!caught_up(peers_[value(to)]))
    return Error{Code::kBusy, 0, "the replica does not follow closely enough"};
  begin_transfer(to);
  deadline_ns_ = now_.now_ns;
  return Done{};
}

void Replica::begin_transfer(ReplicaId to) {
  membership_.transfer_to = to;
  membership_.transfer_until_ns = now_.now_ns + config_.ask_timeout_ns;
  finish_transfer();
}

// Once nothing is in flight, a hand-over loses nothing (C8).
void Replica::finish_transfer() {
  const Peer& p = peers_[value(membership_.transfer_to)];
  if (p.state != PeerState::kStreaming || p.acked_pos != end_.pos || commit_ != end_) return;
  const ReplicaId to = membership_.transfer_to;
  const bool leaves = !votes();
  Message m = message(MessageType::kTransfer);
  m.view = promised_;
  step_down();
  seeking_.campaign_at_ns = now_.now_ns + config_.ask_timeout_ns;  // the other replica goes first
  send(to, m);
  if (leaves) leave();
}

}  // namespace crane::consensus::core
