// SPDX-License-Identifier: Apache-2.0
// The leader's stream to each follower: write, count, commit (rule `memory`: Mu 4.1; rule `disk`:
// commit.cc).
#include <algorithm>
#include <cstring>
#include <functional>

#include "consensus/core/replica.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

void Replica::tick_leader() {
  const std::uint64_t now = now_.now_ns;
  if (now >= heartbeat_.own_at_ns) {
    const bool fast = active() || role_ != Role::kLeader;
    heartbeat_.period_ns = fast ? config_.period_active_ns : config_.period_idle_ns;
    heartbeat_.own_at_ns = now + heartbeat_.period_ns;
    ++heartbeat_.own;
    publish_status();
  }
  if (phase_ != Phase::kLeading) return;
  if (commit_ != end_ && now - reign_->progress_ns > config_.progress_timeout_ns &&
      !disks_are_slow()) {
    ++seeking_.lost_races;  // C6: work outstanding and no majority
    step_down();
    return plan_campaign(true);
  }
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    const ReplicaId id{i};
    Peer& p = peers_[i];
    if (id == self()) continue;
    if (p.state == PeerState::kStreaming) {
      if (p.throttled) read_status(id);
      read_durable(id);
      flush_commit(id);
      if (now >= probe_due(p)) write_commit(id);
    } else if (p.state == PeerState::kBehind && p.up && now >= p.retry_at_ns) {
      send_behind(id);
    } else if (must_send_join(id) && now >= p.retry_at_ns) {
      Message m = message(MessageType::kRequest);
      m.view = promised_;
      send(id, m);
      p.retry_at_ns = now + (config_.retry_ns << p.retry_power);
      p.retry_power = std::min(p.retry_power + 1, kRetryPowerMax);
    }
  }
}

bool Replica::room_for(std::uint64_t bytes, std::uint64_t reserve) {
  const std::uint64_t usable = ring_.ring_bytes() - reserve;
  if (end_.pos + bytes - published_.pos <= usable) return true;
  if (consumed() == published_) return false;
  publish_promise();
  publish_status();
  return end_.pos + bytes - published_.pos <= usable;
}

void Replica::append(std::uint8_t type, std::uint32_t grant, std::uint64_t stamp_ns,
                     std::span<const std::byte> payload) {
  CRANE_ASSERT(phase_ == Phase::kLeading && permission_.writer == kNoReplica);  // CORE-P3
  const std::uint64_t at = end_.pos;
  const std::uint64_t new_end = at + entry_bytes(payload.size());
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    Peer& p = peers_[i];
    const bool needs = p.state == PeerState::kStreaming || p.state == PeerState::kMatching;
    const std::uint64_t from =
        p.state == PeerState::kMatching ? p.match.pos : std::min(p.acked_pos, p.sent.pos);
    if (!needs || from + ring_.ring_bytes() >= new_end) continue;
    lose_peer(ReplicaId{i});  // CORE-C4: bytes that it still needs are about to leave the ring
    if (p.state == PeerState::kIdle) p.retry_at_ns = now_.now_ns + config_.progress_timeout_ns;
  }
  EntryHeader h;
  h.view = value(promised_);
  h.commit = value(commit_.last.index);
  h.stamp_ns = stamp_ns;
  h.grant = grant;
  h.type = type;
  ring_.append(end_, h, payload);
  if (type == kConfig) {
    note_config(ring_.header_at(at), payload);
    members_changed();
  }
  high_pos_ = std::max(high_pos_, end_.pos);
  note_traffic(1);
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    if (peers_[i].state == PeerState::kStreaming) pump(ReplicaId{i});
  }
  if (members().quorum() == 1 || mutant(Mutant::kMinorityCommit)) count_commit();
}

// CORE-C4: the limit for writes to this follower's ring.  A quarter stays free for a START that
// unblocks it.
std::uint64_t Replica::stream_limit(const Peer& p) const {
  if (mutant(Mutant::kOverwriteUncopied)) return ~std::uint64_t{0};
  const std::uint64_t all = p.consumed_pos + ring_.ring_bytes();
  return p.sent.pos >= reign_->start_end_pos ? all - ring_.ring_bytes() / kReserveDivisor : all;
}

Cursor Replica::range_end(const Peer& p, std::uint64_t limit) const {
  if (end_.pos <= limit && end_.pos - p.sent.pos <= config_.write_bytes_max) return end_;
  Cursor to = p.sent;
  while (to.pos < end_.pos) {
    const EntryHeader h = ring_.header_at(to.pos);
    CRANE_ASSERT(ring_.follows(to, h));  // CORE-L1
    const Cursor further = LogRing::after(h);
    if (further.pos > limit) break;
    if (further.pos - p.sent.pos > config_.write_bytes_max && to.pos > p.sent.pos) break;
    to = further;
  }
  return to;
}

void Replica::pump(ReplicaId id) {
  Peer& p = peers_[value(id)];
  p.throttled = false;
  const auto room = [&] {
    return p.count < kWindowMax && p.sent.pos - p.acked_pos < config_.in_flight_bytes_max;
  };
  while (p.state == PeerState::kStreaming && p.sent.pos < end_.pos && room()) {
    const Cursor to = range_end(p, stream_limit(p));
    if (to.pos == p.sent.pos) {
      p.throttled = true;
      break;
    }
    write_range(id, to);
  }
  if (end_.pos - p.consumed_pos > ring_.ring_bytes() / kPipelineDivisor) read_status(id);
}

void Replica::write_range(ReplicaId id, const Cursor& to) {
  Peer& p = peers_[value(id)];
  CRANE_ASSERT(to.pos <= stream_limit(p));  // CORE-C4
  const std::uint64_t size = to.pos - p.sent.pos;
  const std::uint64_t first = std::min(size, ring_.contiguous(p.sent.pos));
  p.connected = true;
  if (first < size) {
    emit(WriteLog{id, p.key, ring_.offset(p.sent.pos), first, token(OpKind::kWritePart, id)});
  }
  const Token t = token(OpKind::kWriteEntries, id);
  const std::uint64_t rest = first < size ? size - first : size;
  emit(WriteLog{id, p.key, ring_.offset(to.pos - rest), rest, t});
  p.in_flight[(p.first + p.count) % kWindowMax] = {sequence_, to.pos, to.last.index};
  ++p.count;
  p.sent = to;
}

void Replica::on_written(ReplicaId id, std::uint32_t sequence, bool ok) {
  Peer& p = peers_[value(id)];
  if (p.state != PeerState::kStreaming) return;
  // Out of order would break CORE-S4: rather restart than count a log that may have a gap.
  const bool expected = p.count > 0 && p.in_flight[p.first].sequence == sequence;
  if (!ok || !expected) return lose_peer(id);
  p.retry_power = 0;  // it can be written to; a grant alone would not show that
  p.written_ns = now_.now_ns;
  p.acked_pos = p.in_flight[p.first].pos;
  p.acked_index = p.in_flight[p.first].index;
  p.first = (p.first + 1) % kWindowMax;
  --p.count;
  CRANE_ASSERT(p.acked_pos <= p.sent.pos);  // CORE-C2
  resend_progress(id);
  if (p.acked_index > commit_.last.index) count_commit();
  if (membership_.transfer_to != kNoReplica) {
    finish_transfer();
    if (phase_ != Phase::kLeading) return;
  }
  if (p.sent.pos < end_.pos && p.state == PeerState::kStreaming && !p.throttled) pump(id);
}

// CORE-C2: the position that a majority holds, this leader included, if it is past its START.
void Replica::count_commit() {
  if (phase_ != Phase::kLeading) return;
  if (disk()) return count_durable();
  struct Held {
    std::uint64_t pos;
    Index index;
  };
  std::array<Held, kReplicasMax> held;
  std::size_t n = 0;
  if (votes()) held[n++] = {end_.pos, end_.last.index};
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    const Peer& p = peers_[i];
    const bool counts = members().voter(ReplicaId{i}) || mutant(Mutant::kLearnerCounts);  // CORE-M6
    if (p.state == PeerState::kStreaming && counts) held[n++] = {p.acked_pos, p.acked_index};
  }
  std::size_t needed = members().quorum();
  if (mutant(Mutant::kMinorityCommit) && needed > 1) --needed;
  if (n < needed) return;
  const auto nth = held.begin() + static_cast<std::ptrdiff_t>(needed) - 1;
  std::nth_element(held.begin(), nth, held.begin() + static_cast<std::ptrdiff_t>(n),
                   [](const Held& a, const Held& b) { return a.pos > b.pos; });
  if (nth->pos < reign_->start_end_pos && !mutant(Mutant::kCountOldViews)) return;
  advance_commit(nth->index);
}

void Replica::advance_commit(Index index) {
  if (index <= commit_.last.index) return;
  learn_commit(index);
  reign_->progress_ns = now_.now_ns;
  if (role_ == Role::kCandidate && commit_.pos >= reign_->start_end_pos) {
    seeking_.transfer = false;
    note_elected();
    set_role(Role::kLeader, self());
  }
}

// If no later entry carries the commit index, one small write to the commit cell does (C3).
void Replica::flush_commit(ReplicaId id) {
  Peer& p = peers_[value(id)];
  if (p.state != PeerState::kStreaming || p.commit_outstanding ||
      p.sent_commit >= commit_.last.index || p.sent.pos < reign_->start_end_pos ||
      mutant(Mutant::kSilentCommit)) {
    return;
  }
  write_commit(id);
}

// Also writes an unchanged commit index: a probe only needs a write that arrives.
void Replica::write_commit(ReplicaId id) {
  Peer& p = peers_[value(id)];
  ring_.set_commit_cell(promised_, commit_.last.index);
  p.sent_commit = commit_.last.index;
  p.commit_outstanding = true;
  p.connected = true;
  emit(WriteLog{id, p.key, ring_.commit_cell_offset(), kCommitCellBytes,
                token(OpKind::kWriteCommit, id)});
}

void Replica::send_progress(ReplicaId id) {
  Peer& p = peers_[value(id)];
  Message m = message(MessageType::kProgress);
  m.view = promised_;
  m.last = {promised_, p.acked_index};
  p.progress_pos = p.acked_pos;
  send(id, m);
}

// A follower that gets a long history scans everything after its commit index again with every
// write, until it holds this START; and if this leader is lost earlier, the next one begins
// there.
void Replica::resend_progress(ReplicaId id) {
  const Peer& p = peers_[value(id)];
  if (p.acked_pos >= reign_->start_end_pos) return;
  if (p.acked_pos - p.progress_pos >= ring_.ring_bytes() / kProgressDivisor) send_progress(id);
}

void Replica::read_status(ReplicaId id) {
  Peer& p = peers_[value(id)];
  if (p.status_outstanding) return;
  p.status_outstanding = true;
  emit(ReadCell{id, kStatusCell, token(OpKind::kReadStatus, id)});
}

void Replica::on_status(ReplicaId id, const Completion& e) {
  Peer& p = peers_[value(id)];
  p.status_outstanding = false;
  Cell cell{};
  if (!e.ok || e.data.size() != sizeof cell) return;
  std::memcpy(cell.data(), e.data.data(), sizeof cell);
  const bool moved = cell[kConsumedPos] > p.consumed_pos;
  // A value read before the grant has another epoch; after the grant the position does not fall
  // (CORE-C8), so the larger value is the newer one.
  p.consumed_pos = std::max(p.consumed_pos, cell[kConsumedPos]);
  p.applied = Index{cell[kAppliedIndex]};
  if (p.state != PeerState::kStreaming || !p.throttled) return;
  if (moved) pump(id);
  if (p.throttled && p.sent.pos < reign_->start_end_pos) send_progress(id);
}

// An error of one peer concerns that peer only (L5): the leader asks, reads and writes it again.
void Replica::lose_peer(ReplicaId id) {
  Peer& p = peers_[value(id)];
  if (mutant(Mutant::kErrorStopsAll) && role_ == Role::kLeader) return step_down();
  if (p.connected) emit(CloseLog{id});
  ++p.epoch;
  p.connected = p.granted = p.throttled = p.status_outstanding = p.commit_outstanding = false;
  p.durable = Index{0};  // it may recover with another incarnation, whose store is empty
  set_state(p, PeerState::kIdle);
  p.retry_at_ns = now_.now_ns + (config_.retry_ns << p.retry_power) / 4;
  p.retry_power = std::min(p.retry_power + 1, kRetryPowerMax);
}

void Replica::set_state(Peer& p, PeerState state) { move(p.state, state); }

}  // namespace crane::consensus::core
