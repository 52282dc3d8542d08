// SPDX-License-Identifier: Apache-2.0
// A new leader makes a majority equal: adopt the best log, find each follower's first differing
// entry (DESIGN C2, Mu 4.2).
#include <algorithm>
#include <cstring>

#include "consensus/core/replica.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

void Replica::ask_for_grants() {
  set_phase(Phase::kAsking);
  seeking_.deadline_ns = now_.now_ns + ask_timeout_ns();
  if (candidacy_->asked_in != promised_) candidacy_->asked = members();
  candidacy_->asked_in = promised_;
  if (granted_quorum()) return choose_log();
  Message m = message(MessageType::kRequest);
  m.view = promised_;
  m.transfer = seeking_.transfer ? 1 : 0;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    const bool voter = members().voter(ReplicaId{i}) || mutant(Mutant::kLearnerVotes);
    if (ReplicaId{i} == self() || !voter || peers_[i].granted) continue;
    send(ReplicaId{i}, m);
    peers_[i].retry_at_ns = now_.now_ns + config_.retry_ns;
  }
}

void Replica::on_grant(const Message& m) {
  if (m.view != promised_ || phase_ == Phase::kNone || phase_ == Phase::kFencing) return;
  const ReplicaId id{m.from};
  Peer& p = peers_[m.from];
  if (phase_ == Phase::kLeading && !is(id, m.incarnation)) return;
  if (phase_ == Phase::kLeading && role_ == Role::kCandidate && m.config > config_at() &&
      m.last > candidacy_->adopted_last && !mutant(Mutant::kStaleConfig)) {
    ++seeking_.lost_races;  // U3b: by its CONFIG these grants may be no majority
    step_down();
    return plan_campaign(true);
  }
  if (p.connected) emit(CloseLog{id});
  ++p.epoch;
  p.connected = p.throttled = p.status_outstanding = p.commit_outstanding = false;
  p.granted = true;
  p.grant = m;
  p.key = m.key;
  p.consumed_pos = m.consumed_pos;
  set_state(p, PeerState::kGranted);
  if (phase_ == Phase::kLeading) return begin_match(id);
  if (phase_ == Phase::kAdopting && id == candidacy_->source) {  // it granted again: read it again
    candidacy_->outstanding = false;
    candidacy_->have = 0;
    candidacy_->source_last = m.last;
    candidacy_->source_end_pos = m.end_pos;
    return read_adopt();
  }
  if (phase_ != Phase::kAsking) return;
  if (granted_quorum()) choose_log();
}

// C2: the log whose last entry has the highest (view, index).
void Replica::choose_log() {
  Viewstamp best = end_.last;
  candidacy_->source = kNoReplica;
  candidacy_->source_commit = commit_.last.index;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    const Peer& p = peers_[i];
    if (!p.granted) continue;
    candidacy_->source_commit = std::max(candidacy_->source_commit, p.grant.commit.index);
    if (p.grant.last > best) {
      best = p.grant.last;
      candidacy_->source = ReplicaId{i};
    }
  }
  if (candidacy_->source == kNoReplica || mutant(Mutant::kKeepOwnLog)) {
    learn_commit(candidacy_->source_commit);
    return conclude_adoption();
  }
  const Message& g = peers_[value(candidacy_->source)].grant;
  candidacy_->source_last = g.last;
  candidacy_->source_end_pos = g.end_pos;
  candidacy_->at = commit_;
  candidacy_->have = 0;
  if (phase_ != Phase::kAdopting) set_phase(Phase::kAdopting);
  seeking_.deadline_ns = now_.now_ns + config_.progress_timeout_ns;
  if (g.first_pos > candidacy_->at.pos) {  // too far behind to lead: let another one campaign
    ++seeking_.lost_races;
    step_down();
    return plan_campaign(true);
  }
  read_adopt();
}

void Replica::read_adopt() {
  if (candidacy_->outstanding) return;
  if (adopt_entries()) return conclude_adoption();
  const std::uint64_t pos = candidacy_->at.pos + candidacy_->have;
  const std::uint64_t size =
      std::min({read_bytes_.size() - candidacy_->have, ring_.contiguous(pos),
                candidacy_->source_end_pos > pos ? candidacy_->source_end_pos - pos : 0});
  if (size == 0) return;  // waits for room in its ring, until the phase's deadline
  candidacy_->outstanding = true;
  emit(ReadLog{candidacy_->source, ring_.offset(pos), size,
               token(OpKind::kReadAdopt, candidacy_->source)});
}

void Replica::on_read_adopt(const Completion& e) {
  candidacy_->outstanding = false;
  if (phase_ != Phase::kAdopting) return;
  if (!e.ok || e.data.size() > read_bytes_.size() - candidacy_->have) {
    ++seeking_.lost_races;
    step_down();
    return plan_campaign(true);
  }
  std::memcpy(read_bytes_.data() + candidacy_->have, e.data.data(), e.data.size());
  candidacy_->have += e.data.size();
  read_adopt();
}

// Takes whole entries from what was read; true when the log is adopted.  A local entry that is
// right stays as it is (U1).
bool Replica::adopt_entries() {
  std::uint64_t used = 0;
  EntryHeader h;
  while (candidacy_->at.last != candidacy_->source_last) {
    const std::span<const std::byte> rest{read_bytes_.data() + used, candidacy_->have - used};
    if (!ring_.valid_bytes(candidacy_->at, rest, h)) break;
    const std::uint64_t size = entry_bytes(h.length);
    const EntryHeader own = ring_.header_at(candidacy_->at.pos);
    const bool same =
        candidacy_->at.pos < end_.pos && ring_.follows(candidacy_->at, own) && own.view == h.view;
    if (!same) {
      if (candidacy_->at.pos + size > published_.pos + ring_.ring_bytes()) {
        publish_promise();
        if (candidacy_->at.pos + size > published_.pos + ring_.ring_bytes()) break;
      }
      end_ = candidacy_->at;
      forget_configs(end_.last.index);
      ring_.put(end_.pos, rest.first(size));
      if (h.type == kConfig) note_config(h, rest.subspan(kHeaderBytes, h.length));
      end_ = LogRing::after(h);
      high_pos_ = std::max(high_pos_, end_.pos);
    }
    candidacy_->at = LogRing::after(h);
    used += size;
    seeking_.deadline_ns = now_.now_ns + config_.progress_timeout_ns;
  }
  std::memmove(read_bytes_.data(), read_bytes_.data() + used, candidacy_->have - used);
  candidacy_->have -= used;
  learn_commit(std::min(candidacy_->source_commit, candidacy_->at.last.index));
  if (candidacy_->at.last != candidacy_->source_last) return false;
  end_ = candidacy_->at;
  forget_configs(end_.last.index);
  return true;
}

// CORE-M5: the adopted log may hold a newer CONFIG than the one by which grants were requested.
void Replica::conclude_adoption() {
  if (mutant(Mutant::kStaleConfig) || mutant(Mutant::kKeepOwnLog)) return start_leading();
  if (!votes()) return step_down();
  const auto better = [this](const Peer& p) { return p.granted && p.grant.last > end_.last; };
  if (std::any_of(peers_.begin(), peers_.end(), better)) return choose_log();
  if (!granted_quorum()) return ask_for_grants();
  start_leading();
}

void Replica::start_leading() {
  if (candidacy_->source_commit > end_.last.index) {
    return fail("no log of a majority contains an entry that was committed");
  }
  if (mutant(Mutant::kRestamp)) restamp_adopted();
  if (!room_for(entry_bytes(0), 0)) {
    ++seeking_.lost_races;
    step_down();
    return plan_campaign(true);
  }
  set_phase(Phase::kLeading);
  CRANE_ASSERT(granted_quorum() || mutant(Mutant::kStaleConfig));  // CORE-M5
  candidacy_->source = kNoReplica;
  reign_.enter();
  candidacy_->adopted_last = end_.last;
  reign_->progress_ns = now_.now_ns;
  reign_->start_end_pos = end_.pos + entry_bytes(0);
  reign_->intact_pos = published_.pos;  // CORE-C4
  append(kStart, 0, 0, {});
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    if (!peers_[i].granted || phase_ != Phase::kLeading) continue;
    if (!is(ReplicaId{i}, peers_[i].grant.incarnation)) {
      lose_peer(ReplicaId{i});
    } else {
      begin_match(ReplicaId{i});
    }
  }
}

// Only for a mutant: violates U1.
void Replica::restamp_adopted() {
  Cursor at = commit_;
  Cursor out = commit_;
  while (at.pos < end_.pos) {
    EntryHeader h = ring_.header_at(at.pos);
    const std::span<const std::byte> view = ring_.payload(h);
    const std::vector<std::byte> bytes(view.begin(), view.end());
    at = LogRing::after(h);
    h.view = value(promised_);
    ring_.append(out, h, bytes);
  }
  end_ = out;
}

void Replica::begin_match(ReplicaId id) {
  Peer& p = peers_[value(id)];
  if (p.grant.commit.index > end_.last.index) {
    return fail("a follower has committed beyond the adopted log");
  }
  if (mutant(Mutant::kCountGap) && p.acked_pos > 0) return start_stream(id, end_);
  if (mutant(Mutant::kCommitUnrepaired)) {
    p.acked_index = end_.last.index;
    send_progress(id);
  }
  p.match = {p.grant.commit_pos, p.grant.commit};
  p.have = 0;
  if (p.match.pos + ring_.ring_bytes() < high_pos_ || !intact_from(p.match)) {
    set_state(p, PeerState::kBehind);
    p.cannot = !disk();
    p.retry_power = 0;
    return send_behind(id);
  }
  if (match_locally(p)) return start_stream(id, p.match);
  set_state(p, PeerState::kMatching);
  read_match(id);
}

// Unfinished writes of a fenced writer may have overwritten consumed bytes, in places if its last
// copies were torn, with entries that never became part of a log.  So entries before every
// replica's consumed position are checked before they are sent.
bool Replica::intact_from(Cursor at) {
  const Cursor begin = at;
  EntryHeader h;
  while (at.pos < reign_->intact_pos) {
    if (!ring_.valid_at(at, h)) return false;
    at = LogRing::after(h);
  }
  reign_->intact_pos = std::min(reign_->intact_pos, begin.pos);
  return true;
}

// The usual case needs no reading: our log contains the follower's last stamp, so the follower's
// log is a prefix of ours.
bool Replica::match_locally(Peer& p) {
  Cursor at = p.match;
  while (at.last.index < std::min(p.grant.last.index, end_.last.index)) {
    const EntryHeader h = ring_.header_at(at.pos);
    if (!ring_.follows(at, h)) return false;
    at = LogRing::after(h);
  }
  if (at.last != p.grant.last || at.pos != p.grant.end_pos) return false;
  p.match = at;
  return true;
}

void Replica::read_match(ReplicaId id) {
  Peer& p = peers_[value(id)];
  const std::uint64_t pos = p.match.pos + p.have;
  const std::uint64_t size = std::min({p.match_bytes.size() - p.have, ring_.contiguous(pos),
                                       p.grant.end_pos > pos ? p.grant.end_pos - pos : 0});
  if (size == 0) return start_stream(id, p.match);
  emit(ReadLog{id, ring_.offset(pos), size, token(OpKind::kReadMatch, id)});
}

void Replica::on_read_match(ReplicaId id, const Completion& e) {
  Peer& p = peers_[value(id)];
  if (p.state != PeerState::kMatching) return;
  if (!e.ok || e.data.size() > p.match_bytes.size() - p.have) return lose_peer(id);
  std::memcpy(p.match_bytes.data() + p.have, e.data.data(), e.data.size());
  p.have += e.data.size();
  if (compare_match(p)) return start_stream(id, p.match);
  read_match(id);
}

// Compares headers; true when the first difference, or the end of either log, is found.
bool Replica::compare_match(Peer& p) {
  while (p.match.pos < std::min(end_.pos, p.grant.end_pos)) {
    if (p.have < kHeaderBytes) return false;
    EntryHeader theirs;
    std::memcpy(static_cast<void*>(&theirs), p.match_bytes.data(), kHeaderBytes);
    const EntryHeader ours = ring_.header_at(p.match.pos);
    const bool same = ring_.follows(p.match, ours) && ring_.follows(p.match, theirs) &&
                      ours.view == theirs.view && ours.crc == theirs.crc;
    if (!same) return true;
    p.match = LogRing::after(ours);
    const std::uint64_t size = entry_bytes(ours.length);
    if (size >= p.have) {
      p.have = 0;
    } else {
      p.have -= size;
      std::memmove(p.match_bytes.data(), p.match_bytes.data() + size, p.have);
    }
  }
  return true;
}

void Replica::start_stream(ReplicaId id, Cursor from) {
  Peer& p = peers_[value(id)];
  set_state(p, PeerState::kStreaming);
  p.written_ns = now_.now_ns;
  p.sent = from;
  p.acked_pos = from.pos;
  p.acked_index = from.last.index;
  p.first = p.count = 0;
  p.sent_commit = Index{0};
  p.progress_pos = p.grant.commit_pos;
  pump(id);
  if (p.throttled && p.sent.pos < reign_->start_end_pos) send_progress(id);
  resend_progress(id);
  count_commit();
}

}  // namespace crane::consensus::core
