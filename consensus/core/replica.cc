// SPDX-License-Identifier: Apache-2.0
// The composed machine: dispatch, log scan, delivery, what is published, timers.
#include "consensus/core/replica.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "dmt/base/assert.h"

namespace crane::consensus::core {

namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Replica::Replica(const Config& config, std::span<std::byte> log_memory)
    : config_(config),
      ring_(log_memory, config.ring_bytes, config.log_id, config.payload_bytes_max),
      prevote_yes_(config.replicas),
      peers_(config.replicas),
      adopt_bytes_(entry_bytes(config.payload_bytes_max) + kMatchBytes) {
  CRANE_ASSERT(config.replicas >= 1 && config.replicas <= kReplicasMax);
  CRANE_ASSERT(value(config.self) < config.replicas);
  CRANE_ASSERT(config.period_active_ns > 0 && config.period_active_ns <= config.period_idle_ns);
  CRANE_ASSERT(config.slot_ns > 0 && config.ask_timeout_ns > 0 && config.retry_ns > 0);
  actions_.reserve(64 + std::size_t{config.replicas} * 16);
}

void Replica::step(const Event& event, Now now) {
  if (role_ == Role::kFailed) return;
  now_ = now;
  std::visit([this](const auto& e) { on(e); }, event);
  pump_store();
  CRANE_ASSERT(deliver_.pos <= commit_.pos && commit_.pos <= end_.pos);  // C1
  plan_deadline();
}

Result<Index> Replica::propose(const Proposal& proposal, Now now) {
  if (role_ != Role::kLeader) return Error{Code::kNotLeader, 0, "propose"};
  if (proposal.payload.size() > config_.payload_bytes_max || proposal.type >= kOwnTypesMin) {
    return Error{Code::kBadArgument, 0, "propose"};
  }
  now_ = now;
  const std::uint64_t bytes = entry_bytes(proposal.payload.size());
  const bool pipeline_full = end_.pos + bytes - commit_.pos > ring_.ring_bytes() / kPipelineDivisor;
  if (pipeline_full || !room_for(bytes, ring_.ring_bytes() / kReserveDivisor)) {
    return Error{Code::kBusy, 0, "propose"};
  }
  if (commit_ == end_) progress_ns_ = now.now_ns;
  append(proposal.type, proposal.grant, proposal.stamp_ns, proposal.payload);
  if (active()) beat_at_ns_ = std::min(beat_at_ns_, now.now_ns + config_.period_active_ns);
  deadline_ns_ = std::min(deadline_ns_, beat_at_ns_);
  return end_.last.index;
}

bool Replica::take_actions(ActionList& out) {
  out.clear();
  if (actions_.empty()) return false;
  out.swap(actions_);
  if (actions_.capacity() < out.capacity()) actions_.reserve(out.capacity());
  return true;
}

View Replica::leading_view() const noexcept { return phase_ == Phase::kNone ? View{0} : promised_; }

std::optional<Entry> Replica::deliver() {
  if (deliver_.last.index >= commit_.last.index || role_ == Role::kFailed) return std::nullopt;
  EntryHeader h;
  if (phase_ != Phase::kNone) {  // only this replica itself writes its ring now
    h = ring_.header_at(deliver_.pos);
    CRANE_ASSERT(ring_.follows(deliver_, h));  // L1
  } else if (!ring_.valid_at(deliver_, h)) {
    // C3, U11: seen whole once, then a later write of the same stream, and not whole now: what was
    // seen was a torn copy that happened to match.  Look again from here.
    end_ = commit_ = deliver_;
    unrepair();
    return std::nullopt;
  }
  deliver_ = LogRing::after(h);
  CRANE_ASSERT(deliver_.pos <= commit_.pos);  // C1
  return Entry{
      {View{h.view}, Index{h.index}}, h.type, h.grant, h.stamp_ns, h.pos, ring_.payload(h)};
}

// --- events
// -----------------------------------------------------------------------------------------

void Replica::on(const Start& e) {
  if (role_ != Role::kStarting || revokes_left_ > 0) return;
  const bool admitted = config_.incarnation == config_.admitted[value(self())];
  if ((e.kind == StartKind::kLost || !admitted) && !mutant(Mutant::kAmnesiacVoter)) {
    publish_promise();  // the next start on this memory must know which incarnation it was
    return set_role(Role::kLearner, kNoReplica);
  }
  if (e.kind == StartKind::kSurvived) {
    promised_ = View{e.promise[kPromisedView]};
    if (mutant(Mutant::kForgetPromise)) promised_ = View{0};
    view_max_ = promised_;
    commit_ = {e.promise[kAnchorPos],
               {View{e.promise[kAnchorView]}, Index{e.promise[kAnchorIndex]}}};
    deliver_ = end_ = published_ = commit_;
    store_.begin_at(commit_);  // what is given up to be overwritten was durable before (D4)
    promise_stored_ = e.stored_promise;
    store_promise();
    high_pos_ = std::max(commit_.pos, e.promise[kFirstPos] + config_.ring_bytes);
    // A grant of the previous incarnation may still be used: nothing is read before it is fenced.
    for (std::uint8_t i = 0; i < config_.replicas; ++i) {
      if (ReplicaId{i} == self()) continue;
      emit(RevokeWrites{ReplicaId{i}});
      ++revokes_left_;
    }
  }
  publish_promise();
  publish_status();
  if (revokes_left_ > 0) return;
  scan();
  set_role(Role::kFollower, kNoReplica);
  plan_campaign(false);
  if (config_.campaign_at_once && self() == ReplicaId{0} && e.kind == StartKind::kNew) {
    campaign_at_ns_ = now_.now_ns;
  }
}

void Replica::on(const Tick&) {
  if (consumed() != published_ && role_ != Role::kLearner && role_ != Role::kStarting) {
    publish_promise();
    publish_status();
  }
  if (role_ == Role::kFollower) {
    if (writer_ != kNoReplica && fence_ == Fence::kNone) scan();
    tick_follower();
  } else if (phase_ != Phase::kNone) {
    tick_candidate();
    if (phase_ != Phase::kNone) tick_leader();
  }
}

void Replica::on(const LogArrived&) {
  if (role_ == Role::kFollower && fence_ != Fence::kRevoking) scan();
}

void Replica::on(const Flush&) {
  publish_if_moved();
  if (phase_ != Phase::kLeading) return;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    if (ReplicaId{i} != self()) flush_commit(ReplicaId{i});
  }
}

void Replica::on(const Completion& e) {
  const std::uint64_t t = static_cast<std::uint64_t>(e.token);
  const auto kind = static_cast<OpKind>(t >> 56);
  const auto id = static_cast<std::uint8_t>(t >> 48);
  const auto epoch = static_cast<std::uint16_t>(t >> 32);
  if (id >= config_.replicas || role_ == Role::kLearner) return;
  if (kind == OpKind::kReadHeartbeat) {
    if (epoch == static_cast<std::uint16_t>(read_epoch_)) on_heartbeat(e);
    return;
  }
  Peer& p = peers_[id];
  if (epoch != static_cast<std::uint16_t>(p.epoch) || phase_ == Phase::kNone) return;
  switch (kind) {
    case OpKind::kWriteEntries:
      on_written(ReplicaId{id}, static_cast<std::uint32_t>(t), e.ok);
      break;
    case OpKind::kWritePart:
      if (!e.ok) lose_peer(ReplicaId{id});
      break;
    case OpKind::kWriteCommit:
      p.commit_outstanding = false;
      if (!e.ok) lose_peer(ReplicaId{id});
      break;
    case OpKind::kReadMatch:
      on_read_match(ReplicaId{id}, e);
      break;
    case OpKind::kReadAdopt:
      if (ReplicaId{id} == source_) on_read_adopt(e);
      break;
    case OpKind::kReadStatus:
      on_status(ReplicaId{id}, e);
      break;
    case OpKind::kReadDurable:
      on_read_durable(ReplicaId{id}, e);
      break;
    case OpKind::kReadHeartbeat:
      break;
  }
}

void Replica::on(const MessageArrived& e) {
  Message m;
  if (e.bytes.size() != sizeof m) return;
  std::memcpy(static_cast<void*>(&m), e.bytes.data(), sizeof m);
  if (m.log_id != config_.log_id || ReplicaId{m.from} != e.from) return;
  if (m.from >= config_.replicas || e.from == self()) return;
  // C5: who lost its memory comes back under an incarnation that no CONFIG has admitted.
  if (m.incarnation != config_.admitted[m.from] && !mutant(Mutant::kAmnesiacVoter)) return;
  const bool asks = m.type == MessageType::kPreVote || m.type == MessageType::kRequest;
  if (role_ == Role::kStarting || role_ == Role::kLearner) {
    if (asks && role_ == Role::kLearner) refuse(e.from, m.view);
    return;
  }
  switch (m.type) {
    case MessageType::kPreVote:
      return on_prevote(m);
    case MessageType::kPreVoteYes:
      return on_prevote_yes(m);
    case MessageType::kRequest:
      return on_request(m);
    case MessageType::kGrant:
      return on_grant(m);
    case MessageType::kRefuse:
      return on_refuse(m);
    case MessageType::kTransfer:
      return on_transfer(m);
    case MessageType::kDurable:
      return on_durable(e.from, m.view, m.last);
    case MessageType::kProgress:
      if (role_ == Role::kFollower && m.view == promised_ && e.from == view_owner(promised_)) {
        // The leader verified this log up to m.last: commits up to there count before repair (C3).
        if (fence_ == Fence::kNone) scan();
        learn_commit(std::min(m.commit.index, m.last.index));
      }
      return;
  }
}

void Replica::on(const PeerDown& e) {
  if (value(e.peer) >= config_.replicas || e.peer == self()) return;
  peers_[value(e.peer)].up = false;
  if (phase_ != Phase::kNone) {
    lose_peer(e.peer);
    if (phase_ == Phase::kAdopting && e.peer == source_) {
      ++lost_races_;
      step_down();
      plan_campaign(true);
    }
  } else if (role_ == Role::kFollower && e.peer == leader_) {
    leader_ = kNoReplica;  // C6: on one machine a death is seen at once
    plan_campaign(false);
  }
}

void Replica::on(const PeerUp& e) {
  if (value(e.peer) >= config_.replicas || e.peer == self()) return;
  Peer& p = peers_[value(e.peer)];
  p.up = true;
  p.retry_power = 0;
  p.retry_at_ns = now_.now_ns;
  if (p.state == PeerState::kBehind) set_state(p, PeerState::kIdle);
  if (role_ == Role::kFollower && leader_ == kNoReplica && prevote_view_ == View{0}) {
    lost_races_ = 0;  // a group that forms: now there may be a majority
    plan_campaign(false);
  }
}

void Replica::on(const Abdicate&) {
  fit_ = false;
  campaign_at_ns_ = 0;
  prevote_view_ = View{0};
  if (phase_ == Phase::kNone) return;
  ReplicaId heir = kNoReplica;
  std::uint64_t best = 0;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    const Peer& p = peers_[i];
    if (p.state != PeerState::kStreaming || !p.up || p.acked_pos < best) continue;
    if (heir != kNoReplica && p.acked_pos == best) continue;
    heir = ReplicaId{i};
    best = p.acked_pos;
  }
  Message m = message(MessageType::kTransfer);
  m.view = promised_;
  step_down();
  if (heir != kNoReplica) send(heir, m);
}

void Replica::on(const Fit&) { fit_ = true; }

// --- the log
// ----------------------------------------------------------------------------------------

// Heartbeats follow the traffic: short periods cost processor time, and find a fault sooner.
void Replica::note_traffic(std::uint64_t entries) {
  if (now_.now_ns - traffic_begin_ns_ > config_.active_for_ns) {
    traffic_begin_ns_ = now_.now_ns;
    traffic_entries_ = 0;
  }
  traffic_entries_ += entries;
  if (traffic_entries_ < config_.active_entries) return;
  active_until_ns_ = now_.now_ns + config_.active_for_ns;
  traffic_begin_ns_ = now_.now_ns;
  traffic_entries_ = 0;
}

// Takes in what the writer put into the ring.  Until the log holds an entry of the promised view,
// what lies behind the commit index may still be replaced, so each scan starts there again.
void Replica::scan() {
  Cursor at = repaired_ ? end_ : commit_;
  const Cursor before = end_;
  EntryHeader h;
  while (ring_.valid_at(at, h)) {
    at = LogRing::after(h);
    if (View{h.view} == promised_) heard_commit_ = std::max(heard_commit_, Index{h.commit});
  }
  end_ = at;
  high_pos_ = std::max(high_pos_, end_.pos);
  if (end_ != before && role_ == Role::kFollower && writer_ != kNoReplica) {
    note_traffic(value(end_.last.index) -
                 std::min(value(before.last.index), value(end_.last.index)));
    heartbeat_moved_ns_ = now_.now_ns;
    if (active()) read_at_ns_ = std::min(read_at_ns_, now_.now_ns + config_.period_active_ns);
  }
  if (end_.last.view != promised_) return;
  if (!repaired_) {
    repaired_ = true;
    if (role_ == Role::kFollower && writer_ != kNoReplica)
      emit(RoleChange{role_, promised_, leader_});
  }
  heard_commit_ = std::max(heard_commit_, ring_.commit_cell(promised_));
  learn_commit(heard_commit_);
}

void Replica::learn_commit(Index index) {
  const Index target = std::min(index, end_.last.index);
  if (target <= commit_.last.index) return;
  while (commit_.last.index < target) {
    const EntryHeader h = ring_.header_at(commit_.pos);
    if (!ring_.follows(commit_, h)) {
      end_ = commit_;  // the bytes changed since they were scanned: look again
      unrepair();
      break;
    }
    commit_ = LogRing::after(h);
  }
  emit(Committed{commit_.last.index});
}

// --- what others see
// --------------------------------------------------------------------------------

void Replica::publish_promise() {
  published_ = consumed();
  const std::uint64_t size = ring_.ring_bytes();
  emit(SetCell{
      kPromiseCell,
      {value(promised_), published_.pos, value(published_.last.index), value(published_.last.view),
       config_.incarnation, high_pos_ > size ? high_pos_ - size : 0}});
}

void Replica::publish_status() {
  emit(SetCell{kStatusCell,
               {heartbeat_, heartbeat_period_ns_, value(leading_view()), value(commit_.last.index),
                published_.pos, value(published_.last.index)}});
}

void Replica::publish_if_moved() {
  if (role_ == Role::kLearner || role_ == Role::kStarting) return;
  if (consumed().pos - published_.pos < ring_.ring_bytes() / kPublishDivisor) return;
  publish_promise();
  publish_status();
}

void Replica::set_role(Role role, ReplicaId leader) {
  CRANE_ASSERT(may_follow(role_, role));
  role_ = role;
  emit(RoleChange{role, promised_, leader});
}

void Replica::fail(const char* why) {
  if (phase_ != Phase::kNone) step_down();
  set_role(Role::kFailed, kNoReplica);
  emit(Fatal{why});
}

void Replica::send(ReplicaId to, Message m) { emit(SendMessage{to, m}); }

Message Replica::message(MessageType type) const {
  Message m;
  std::memset(static_cast<void*>(&m), 0, sizeof m);  // padding too: the bytes travel
  m.type = type;
  m.from = value(self());
  m.leader = value(phase_ == Phase::kLeading ? self() : leader_alive() ? leader_ : kNoReplica);
  m.incarnation = config_.incarnation;
  m.log_id = config_.log_id;
  m.promised = std::min(promised_, promise_stored_);  // D1
  m.last = end_.last;
  m.end_pos = end_.pos;
  m.first_pos = high_pos_ > ring_.ring_bytes() ? high_pos_ - ring_.ring_bytes() : 0;
  m.consumed_pos = published_.pos;
  m.commit = commit_.last;
  m.commit_pos = commit_.pos;
  return m;
}

Token Replica::token(OpKind kind, ReplicaId peer) {
  const std::uint32_t epoch =
      kind == OpKind::kReadHeartbeat ? read_epoch_ : peers_[value(peer)].epoch;
  return Token{(std::uint64_t{static_cast<std::uint8_t>(kind)} << 56) |
               (std::uint64_t{value(peer)} << 48) |
               (std::uint64_t{static_cast<std::uint16_t>(epoch)} << 32) | ++sequence_};
}

void Replica::plan_deadline() {
  std::uint64_t at = kNever;
  if (role_ == Role::kFollower) {
    if (leader_ != kNoReplica) at = read_at_ns_;
    if (campaign_at_ns_ != 0) at = std::min(at, campaign_at_ns_);
    if (prevote_view_ != View{0}) at = std::min(at, deadline_phase_ns_);
    if (at == kNever) at = now_.now_ns + config_.period_idle_ns;
  } else if (phase_ != Phase::kNone) {
    at = beat_at_ns_;
    if (phase_ != Phase::kLeading) at = std::min(at, deadline_phase_ns_);
    for (std::uint8_t i = 0; i < config_.replicas; ++i) {
      const Peer& p = peers_[i];
      if (ReplicaId{i} == self() || !p.up) continue;
      if (p.state == PeerState::kIdle) at = std::min(at, p.retry_at_ns);
      if (p.throttled) at = std::min(at, now_.now_ns + config_.period_active_ns);
      at = std::min(at, durable_read_due(p));
    }
  }
  deadline_ns_ = std::max(at, now_.now_ns);
}

}  // namespace crane::consensus::core
