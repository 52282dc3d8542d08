// SPDX-License-Identifier: Apache-2.0
// The composed machine: dispatch, log scan, delivery, published cells, timers.
#include "consensus/core/replica.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::consensus::core {

namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// A CONFIG must fit, however small the application's entries are.
std::uint32_t entry_payload_max(const Config& c) {
  return std::max(c.payload_bytes_max, static_cast<std::uint32_t>(members_bytes(c.replicas)));
}

}  // namespace

Replica::Replica(const Config& config, std::span<std::byte> log_memory)
    : config_(config),
      ring_(log_memory, config.ring_bytes, config.log_id, entry_payload_max(config)),
      read_bytes_(entry_bytes(entry_payload_max(config)) + kMatchBytes),
      peers_(config.replicas) {
  membership_.bytes.resize(kMembersBytesMax);
  seeking_.prevote_yes.resize(config.replicas);
  CRANE_ASSERT(config.replicas >= 1 && config.replicas <= kReplicasMax);
  CRANE_ASSERT(value(config.self) < config.replicas);
  CRANE_ASSERT(config.period_active_ns > 0 && config.period_active_ns <= config.period_idle_ns);
  ring_.test_only_trust_bytes(mutant(Mutant::kSkipCrc));
  CRANE_ASSERT(config.slot_ns > 0 && config.ask_timeout_ns > 0 && config.retry_ns > 0);
  CRANE_ASSERT(config.incarnation != kAnyIncarnation);
  actions_.reserve(64 + std::size_t{config.replicas} * 16);
  membership_.configs.reserve(8);
  const bool all = config.members.voters() == 0;
  membership_.configs.push_back({{}, all ? Members::first(config.replicas) : config.members});
}

void Replica::step(const Event& event, Now now) {
  if (role_ == Role::kFailed || role_ == Role::kRemoved) return;
  now_ = now;
  std::visit([this](const auto& e) { on(e); }, event);
  pump_fetch();
  pump_store();
  pump_truncation();
  CRANE_ASSERT(deliver_.pos <= commit_.pos && commit_.pos <= end_.pos);  // CORE-C1
  plan_deadline();
}

Result<Index> Replica::propose(const Proposal& proposal, Now now) {
  if (role_ != Role::kLeader) return Error{Code::kNotLeader, 0, "propose"};
  if (proposal.payload.size() > config_.payload_bytes_max || proposal.type >= kOwnTypesMin) {
    return Error{Code::kBadArgument, 0, "propose"};
  }
  if (membership_.transfer_to != kNoReplica)
    return Error{Code::kBusy, 0, "leadership is being handed over"};
  now_ = now;
  const std::uint64_t bytes = entry_bytes(proposal.payload.size());
  const bool pipeline_full = end_.pos + bytes - commit_.pos > ring_.ring_bytes() / kPipelineDivisor;
  if (pipeline_full || !room_for(bytes, ring_.ring_bytes() / kReserveDivisor)) {
    return Error{Code::kBusy, 0, "propose"};
  }
  if (commit_ == end_) reign_->progress_ns = now.now_ns;
  append(proposal.type, proposal.grant, proposal.stamp_ns, proposal.payload);
  if (active())
    heartbeat_.own_at_ns = std::min(heartbeat_.own_at_ns, now.now_ns + config_.period_active_ns);
  deadline_ns_ = std::min(deadline_ns_, heartbeat_.own_at_ns);
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
  if (phase_ != Phase::kNone) {  // no other replica can write this ring now
    h = ring_.header_at(deliver_.pos);
    CRANE_ASSERT(ring_.follows(deliver_, h));  // CORE-L1
  } else if (!ring_.valid_at(deliver_, h)) {
    if (deliver_.last.index < entrance_.again_to) {
      fail("the log memory changed after its entries were committed");
      return std::nullopt;
    }
    // C3, U11: the entry was whole once, a later write of the same stream followed, and now it is
    // not whole: the first look saw a torn copy that happened to match.  Scan again from here.
    end_ = commit_ = deliver_;
    unrepair();
    return std::nullopt;
  }
  deliver_ = LogRing::after(h);
  CRANE_ASSERT(deliver_.pos <= commit_.pos);  // CORE-C1
  if (h.type == kTruncation) on_truncation_point(ring_.payload(h));
  return Entry{
      {View{h.view}, Index{h.index}}, h.type, h.grant, h.stamp_ns, h.pos, ring_.payload(h)};
}

// --- events --------------------------------------------------------------------------------------

void Replica::on(const Start& e) {
  if (role_ != Role::kStarting || permission_.revokes_left > 0) return;
  if (e.checkpoint != nullptr) entrance_.checkpoint = *e.checkpoint;
  const bool empty = e.kind != StartKind::kSurvived;
  if (empty && entrance_.checkpoint && entrance_.checkpoint->at.pos > 0)
    begin_log_at(*entrance_.checkpoint);
  membership_.was_member = e.kind == StartKind::kLost || members().member(self());
  membership_.join_at_ns = now_.now_ns;
  note_lost_leader(ElectionCause::kFirst);
  if (e.kind == StartKind::kSurvived) {
    promised_ = View{e.promise[kPromisedView]};
    if (mutant(Mutant::kForgetPromise)) promised_ = View{0};
    view_max_ = promised_;
    commit_ = {e.promise[kLowWaterPos],
               {View{e.promise[kLowWaterView]}, Index{e.promise[kLowWaterIndex]}}};
    deliver_ = end_ = published_ = commit_;
    durable_.store.begin_at(
        commit_);  // entries whose ring bytes were released were durable before (CORE-D4)
    durable_.promise_stored = e.stored_promise;
    store_promise();
    const auto saved = ring_.saved_config();
    if (saved) membership_.configs.front() = *saved;
    membership_.was_member |= saved || commit_.pos > 0;  // only members are written to
    high_pos_ = std::max(commit_.pos, e.promise[kFirstPos] + config_.ring_bytes);
    // A grant of the previous incarnation may still be in use: nothing is read before it is fenced.
    for (std::uint8_t i = 0; i < config_.replicas; ++i) {
      if (ReplicaId{i} == self()) continue;
      emit(RevokeWrites{ReplicaId{i}});
      ++permission_.revokes_left;
    }
  }
  if (config_.keeps_log && !mutant(Mutant::kKeepForgotten)) keep_ = published_;
  publish_promise();
  publish_status();
  if (disk() && e.kind != StartKind::kSurvived) emit(SetCell{kDurableCell, {}});
  if (empty) entrance_.checkpoint.reset();
  if (permission_.revokes_left > 0) return;
  enter();
  if (role_ == Role::kFollower && config_.campaign_at_once && self() == ReplicaId{0} &&
      e.kind == StartKind::kNew) {
    seeking_.campaign_at_ns = now_.now_ns;
  }
}

// No replica may write the ring now: a scan finds the final log.
void Replica::enter() {
  const std::optional<Checkpoint> checkpoint = std::exchange(entrance_.checkpoint, std::nullopt);
  if (checkpoint && !begin_delivery_at(*checkpoint)) return;
  scan();
  set_role(votes() ? Role::kFollower : Role::kLearner, kNoReplica);
  plan_campaign(false);
}

// Starts delivery at a checkpoint, on surviving memory whose low-water mark is the commit cursor.
// False: that is impossible, and this replica has failed.
bool Replica::begin_delivery_at(const Checkpoint& checkpoint) {
  const Cursor& at = checkpoint.at;
  if (at.last.index <= commit_.last.index) {
    if (at == commit_ || disk()) return true;  // disk mode: the driver delivers them from the store
    if (!ring_.holds(at, commit_) && !mutant(Mutant::kReplayUnchecked)) {  // CORE-C6
      entrance_.checkpoint_too_old = true;
      fail("the checkpoint is older than what the ring still holds");
      return false;
    }
    if (mutant(Mutant::kStartLate)) return true;
    entrance_.again_to = commit_.last.index;
    deliver_ = at;
    if (keep_) keep_ = at;
    publish_promise();  // CORE-C4: from now on no replica may overwrite them
    publish_status();
    return true;
  }
  Cursor own = commit_;
  scan();
  while (own.last.index < at.last.index && own.pos < end_.pos) {
    own = LogRing::after(ring_.header_at(own.pos));
  }
  if (own == at) {
    learn_commit(at.last.index);
    if (!mutant(Mutant::kStartEarly)) deliver_ = at;
    if (keep_) keep_ = at;
    entrance_.placed = true;
  } else {
    begin_log_at(checkpoint);
  }
  publish_promise();
  publish_status();
  return true;
}

// C5: the old log ends before the checkpoint, or was never committed: each of its entries that was
// counted is part of the checkpoint.
void Replica::begin_log_at(const Checkpoint& checkpoint) {
  commit_ = deliver_ = end_ = published_ = checkpoint.at;
  if (config_.keeps_log) keep_ = checkpoint.at;
  entrance_.began = end_.last.index;
  durable_.store.begin_at(commit_);
  high_pos_ = std::max(high_pos_, end_.pos + ring_.ring_bytes());  // nothing before is in the ring
  entrance_.placed = true;
  membership_.configs.resize(1);
  if (membership_.configs.front().at <= checkpoint.config.at)
    membership_.configs.front() = checkpoint.config;
  ring_.save_config(membership_.configs.front());
  unrepair();
  if (checkpoint.view > promised_ && !mutant(Mutant::kCheckpointAnyView)) promise(checkpoint.view);
}

void Replica::on(const Tick&) {
  ticked_ns_ = now_.now_ns;
  const bool moved = consumed() != published_ || deliver_.last.index != published_applied_;
  if (moved && role_ != Role::kStarting) {
    publish_promise();
    publish_status();
  }
  if (following()) {
    report_held();
    if (role_ == Role::kLearner) ask_to_join();
    if (permission_.writer != kNoReplica && permission_.fence == FenceState::kNone) scan();
    tick_follower();
  } else if (phase_ != Phase::kNone) {
    tick_candidate();
    if (phase_ != Phase::kNone) tick_leader();
    if (role_ == Role::kLeader) tick_members();
  }
}

void Replica::on(const LogArrived&) {
  if (following() && permission_.fence != FenceState::kRevoking) scan();
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
  if (id >= config_.replicas) return;
  if (kind == OpKind::kReadHeartbeat) {
    if (epoch == static_cast<std::uint16_t>(heartbeat_.read_epoch)) on_heartbeat(e);
    return;
  }
  if (kind == OpKind::kReadFetch) return on_read_fetch(e);
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
      if (!e.ok) return lose_peer(ReplicaId{id});
      p.written_ns = now_.now_ns;
      break;
    case OpKind::kReadMatch:
      on_read_match(ReplicaId{id}, e);
      break;
    case OpKind::kReadAdopt:
      if (candidacy_.entered() && ReplicaId{id} == candidacy_->source) on_read_adopt(e);
      break;
    case OpKind::kReadStatus:
      on_status(ReplicaId{id}, e);
      break;
    case OpKind::kReadDurable:
      on_read_durable(ReplicaId{id}, e);
      break;
    case OpKind::kReadHeartbeat:
    case OpKind::kReadFetch:
      break;
  }
}

void Replica::on(const MessageArrived& e) {
  Message m;
  if (e.bytes.size() != sizeof m) return;
  std::memcpy(static_cast<void*>(&m), e.bytes.data(), sizeof m);
  if (m.log_id != config_.log_id || ReplicaId{m.from} != e.from) return;
  if (m.from >= config_.replicas || e.from == self()) return;
  if (role_ == Role::kStarting || !screen(m)) return;
  note_held(m);
  switch (m.type) {
    case MessageType::kHolds:
      return on_holds(m);
    case MessageType::kJoin:
      return on_join(m);
    case MessageType::kNotMember:
      return on_not_member(m);
    case MessageType::kBehind:
      return on_behind(m);
    case MessageType::kReady:
    case MessageType::kCannot:
      return on_ready(m);
    case MessageType::kFetch:
      return on_fetch(m);
    case MessageType::kFetched:
      return on_fetched(m);
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
    case MessageType::kYield:
      return on_yield(m);
    case MessageType::kTransfer:
      return on_transfer(m);
    case MessageType::kDurable:
      return on_durable(e.from, m.view, m.last);
    case MessageType::kProgress:
      // The leader verified this log up to m.last: commits up to there count before repair
      // (CORE-C3).  This holds only while the leader may write here: a message meant for the
      // previous process of this replica comes too late.
      if (following() && m.view == promised_ && e.from == permission_.writer) {
        if (permission_.fence == FenceState::kNone) scan();
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
    if (lost_majority()) {
      ++seeking_.lost_races;
      step_down();
      plan_campaign(true);
    } else if (phase_ == Phase::kAdopting && e.peer == candidacy_->source) {
      ++seeking_.lost_races;
      step_down();
      plan_campaign(true);
    }
  } else if (following() && e.peer == leader_) {
    leader_ = kNoReplica;  // C6: on one machine a death is noticed at once
    note_lost_leader(ElectionCause::kDeath);
    suspect();
  }
}

// C8: a leader that sees no majority's processes stops leading, even with no work outstanding: its
// clients must learn it rather than wait for an answer that cannot come.
bool Replica::lost_majority() const {
  if (role_ != Role::kLeader || mutant(Mutant::kLeadsAlone)) return false;
  return !members().quorum_of(
      [this](ReplicaId id) { return id == self() || peers_[value(id)].up; });
}

void Replica::on(const PeerUp& e) {
  if (value(e.peer) >= config_.replicas || e.peer == self()) return;
  Peer& p = peers_[value(e.peer)];
  p.up = true;
  p.retry_power = 0;
  p.retry_at_ns = now_.now_ns;
  if (p.state == PeerState::kBehind) set_state(p, PeerState::kIdle);
  if (role_ == Role::kFollower && leader_ == kNoReplica && seeking_.prevote_view == View{0}) {
    seeking_.lost_races = 0;  // a group that forms: now there may be a majority
    plan_campaign(false);
  }
}

void Replica::on(const Abdicate& e) {
  server_healthy_ = false;
  seeking_.abdicated = true;
  seeking_.campaign_at_ns = 0;
  seeking_.prevote_view = View{0};
  if (phase_ == Phase::kNone) return;
  const ReplicaId to = may_succeed(e.to) ? e.to : successor();
  Message m = message(MessageType::kTransfer);
  m.view = promised_;
  step_down();
  if (to != kNoReplica) send(to, m);
}

void Replica::on(const ServerHealthy&) { server_healthy_ = true; }
// A campaign that was planned while the server seemed up to date now gives others their head start.
void Replica::on(const ServerLagging& e) {
  const bool begins = server_lag_.ns == 0 && e.ns > 0;
  server_lag_ = e;
  if (!begins || seeking_.campaign_at_ns == 0) return;
  const std::uint64_t planned = seeking_.campaign_at_ns;
  plan_campaign(false);
  seeking_.campaign_at_ns = std::max(seeking_.campaign_at_ns, planned);
}

// --- the log -------------------------------------------------------------------------------------

// Heartbeats follow the traffic: short periods cost processor time, but find a fault sooner.
void Replica::note_traffic(std::uint64_t entries) {
  if (now_.now_ns - traffic_.begin_ns > config_.active_for_ns) {
    traffic_.begin_ns = now_.now_ns;
    traffic_.entries = 0;
  }
  traffic_.entries += entries;
  if (traffic_.entries < config_.active_entries) return;
  traffic_.active_until_ns = now_.now_ns + config_.active_for_ns;
  traffic_.begin_ns = now_.now_ns;
  traffic_.entries = 0;
}

// Takes in what the writer put into the ring.  Until the log holds an entry of the promised view,
// entries after the commit index may still be replaced, so each scan starts there again.
void Replica::scan() {
  Cursor at = repaired_ ? end_ : commit_;
  const Cursor before = end_;
  EntryHeader h;
  forget_configs(at.last.index);
  while (ring_.valid_at(at, h)) {
    at = LogRing::after(h);
    if (h.type == kConfig) note_config(h, ring_.payload(h));
    if (h.type == kTruncation && mutant(Mutant::kDropUncommitted))
      on_truncation_point(ring_.payload(h));
    if (View{h.view} == promised_) received_commit_ = std::max(received_commit_, Index{h.commit});
  }
  end_ = at;
  high_pos_ = std::max(high_pos_, end_.pos);
  members_changed();
  if (end_ != before && following() && permission_.writer != kNoReplica) {
    note_traffic(value(end_.last.index) -
                 std::min(value(before.last.index), value(end_.last.index)));
    heartbeat_.moved_ns = heartbeat_.landed_ns = now_.now_ns;
    if (active())
      heartbeat_.read_at_ns =
          std::min(heartbeat_.read_at_ns, now_.now_ns + config_.period_active_ns);
  }
  if (end_.last.view != promised_) return;
  if (!repaired_) {
    repaired_ = true;
    membership_.needs_checkpoint = false;
    if (following() && permission_.writer != kNoReplica) {
      note_elected();
      report_role(leader_);
    }
  }
  received_commit_ = std::max(received_commit_, ring_.commit_cell(promised_));
  learn_commit(received_commit_);
}

void Replica::learn_commit(Index index) {
  const Index target = std::min(index, end_.last.index);
  if (target <= commit_.last.index) return;
  while (commit_.last.index < target) {
    const EntryHeader h = ring_.header_at(commit_.pos);
    const Cursor next = LogRing::after(h);
    if (!ring_.follows(commit_, h) || next.pos > end_.pos) {
      end_ = commit_;  // the bytes changed since the scan: scan again
      unrepair();
      break;
    }
    commit_ = next;
  }
  settle_configs();
  emit(Committed{commit_.last.index});
}

// --- published cells -----------------------------------------------------------------------------

void Replica::publish_promise() {
  const Cursor now = consumed();
  CRANE_ASSERT(role_ == Role::kStarting || now.pos >= published_.pos ||
               mutant(Mutant::kKeepTakenBack));  // CORE-C8
  published_ = now;
  const std::uint64_t size = ring_.ring_bytes();
  emit(SetCell{
      kPromiseCell,
      {value(promised_), published_.pos, value(published_.last.index), value(published_.last.view),
       config_.incarnation, high_pos_ > size ? high_pos_ - size : 0}});
}

void Replica::publish_status() {
  published_applied_ = deliver_.last.index;
  emit(SetCell{kStatusCell,
               {heartbeat_.own, heartbeat_.period_ns, value(leading_view()),
                value(commit_.last.index), published_.pos, value(published_applied_)}});
}

void Replica::publish_if_moved() {
  if (role_ == Role::kStarting) return;
  if (consumed().pos - published_.pos < ring_.ring_bytes() / kPublishDivisor) return;
  publish_promise();
  publish_status();
}

void Replica::set_role(Role role, ReplicaId leader) {
  move(role_, role);
  if (role == Role::kLeader) {
    candidacy_.leave();
    reign_->count_held = true;
  }
  report_role(leader);
}

void Replica::report_role(ReplicaId leader) {
  owner_leader_ = leader;
  emit(RoleChange{role_, promised_, leader});
}

void Replica::fail(const char* why) {
  if (phase_ != Phase::kNone) step_down();
  set_role(Role::kFailed, kNoReplica);
  emit(Fatal{why});
}

void Replica::send(ReplicaId to, Message m) { emit(SendMessage{to, m}); }

Message Replica::message(MessageType type) const {
  Message m;
  std::memset(static_cast<void*>(&m), 0, sizeof m);  // the padding is sent, too
  m.type = type;
  m.from = value(self());
  m.leader = value(phase_ == Phase::kLeading ? self() : leader_alive() ? leader_ : kNoReplica);
  m.incarnation = config_.incarnation;
  m.log_id = config_.log_id;
  m.promised = std::min(promised_, durable_.promise_stored);  // CORE-D1
  m.last = end_.last;
  m.end_pos = end_.pos;
  m.first_pos = high_pos_ > ring_.ring_bytes() ? high_pos_ - ring_.ring_bytes() : 0;
  m.consumed_pos = published_.pos;
  m.commit = commit_.last;
  m.commit_pos = commit_.pos;
  m.config = config_at();
  m.held = truncation_.held;
  m.analysis = config_.analysis ? 1 : 0;
  return m;
}

Token Replica::token(OpKind kind, ReplicaId peer) {
  const std::uint32_t epoch =
      kind == OpKind::kReadHeartbeat ? heartbeat_.read_epoch : peers_[value(peer)].epoch;
  return Token{(std::uint64_t{static_cast<std::uint8_t>(kind)} << 56) |
               (std::uint64_t{value(peer)} << 48) |
               (std::uint64_t{static_cast<std::uint16_t>(epoch)} << 32) | ++sequence_};
}

void Replica::plan_deadline() {
  std::uint64_t at = kNever;
  if (following()) {
    if (leader_ != kNoReplica) at = heartbeat_.read_at_ns;
    if (role_ == Role::kLearner)
      at = std::min(at, std::max(membership_.join_at_ns, now_.now_ns + 1));
    if (seeking_.campaign_at_ns != 0) at = std::min(at, seeking_.campaign_at_ns);
    if (seeking_.prevote_view != View{0}) at = std::min(at, seeking_.deadline_ns);
    const bool timed = fetch_.state == FetchState::kWanting || fetch_.state == FetchState::kAsking;
    if (timed) at = std::min(at, fetch_.retry_at_ns);
    if (must_report_held()) at = std::min(at, std::max(truncation_.held_at_ns, now_.now_ns + 1));
    // C6: since the last Tick, not since this event: frequent events would put it off for ever, and
    // a replica that is fit again plans its campaign only in a Tick.
    const std::uint64_t since_ns = mutant(Mutant::kLateTick) ? now_.now_ns : ticked_ns_;
    if (at == kNever) at = since_ns + config_.period_idle_ns;
  } else if (phase_ != Phase::kNone) {
    at = heartbeat_.own_at_ns;
    if (phase_ != Phase::kLeading && !stores_promise()) at = std::min(at, seeking_.deadline_ns);
    for (std::uint8_t i = 0; i < config_.replicas; ++i) {
      const Peer& p = peers_[i];
      if (ReplicaId{i} == self() || !p.up) continue;
      const bool behind = p.state == PeerState::kBehind;
      if (behind || must_send_join(ReplicaId{i}) || must_send_not_member(ReplicaId{i}))
        at = std::min(at, p.retry_at_ns);
      if (p.throttled) at = std::min(at, now_.now_ns + config_.period_active_ns);
      at = std::min(at, durable_read_due(p));
    }
  }
  if (membership_.transfer_to != kNoReplica) {
    at = std::min(at, membership_.transfer_until_ns);
  } else if (role_ == Role::kLeader && !changing() && !votes()) {
    at = membership_.leaves_at_ns;  // its own removal is committed: it hands over
  }
  deadline_ns_ = std::max(at, now_.now_ns);
}

}  // namespace crane::consensus::core
