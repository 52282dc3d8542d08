// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/status/peer_notes.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace crane::replica {
namespace {

// A change must reach the others at once; moved numbers are reported only after a time.
bool same(const PeerNote& a, const PeerNote& b) {
  return a.flags == b.flags && a.receives_log == b.receives_log &&
         (a.lag_ms > control::kNearMs) == (b.lag_ms > control::kNearMs) &&
         std::memcmp(a.why_not, b.why_not, sizeof a.why_not) == 0;
}

// The note's numbers change without an event.
bool is_unsettled(const PeerNote& own) {
  const bool late = own.lag_ms > control::kNearMs && (own.flags & PeerNote::kHeld) == 0;
  return late || (own.flags & PeerNote::kRecovers) != 0;
}

}  // namespace

PeerNote note_of(const control::Readiness& own, std::uint64_t applied) {
  PeerNote note;
  note.applied = applied;
  note.done = own.progress.done;
  note.of = own.progress.of;
  note.per_s = own.progress.per_s;
  note.left_ms = own.progress.left_ms;
  note.lag_ms = own.lag_ms;
  const std::pair<bool, std::uint32_t> flags[] = {
      {own.runs, PeerNote::kRuns},
      {own.starts, PeerNote::kStarts},
      {own.takes_clients, PeerNote::kTakesClients},
      {own.recovers, PeerNote::kRecovers},
      {own.needs_checkpoint, PeerNote::kNeedsCheckpoint},
      {own.no_room, PeerNote::kNoRoom},
      {own.acceptor_only, PeerNote::kAcceptorOnly},
      {own.paced, PeerNote::kPaced},
      {own.held && own.lag_ms > control::kNearMs, PeerNote::kHeld}};
  for (const auto& [is, flag] : flags) note.flags |= is ? flag : 0;
  own.why_not.copy(note.why_not, sizeof note.why_not - 1);
  return note;
}

control::Readiness readiness_of(const PeerNote& note) {
  control::Readiness reported;
  const auto is = [&note](PeerNote::Flag flag) { return (note.flags & flag) != 0; };
  reported.runs = is(PeerNote::kRuns);
  reported.starts = is(PeerNote::kStarts);
  reported.takes_clients = is(PeerNote::kTakesClients);
  reported.recovers = is(PeerNote::kRecovers);
  reported.needs_checkpoint = is(PeerNote::kNeedsCheckpoint);
  reported.no_room = is(PeerNote::kNoRoom);
  reported.acceptor_only = is(PeerNote::kAcceptorOnly);
  reported.paced = is(PeerNote::kPaced);
  reported.held = is(PeerNote::kHeld);
  reported.lag_ms = note.lag_ms;
  reported.progress = {note.done, note.of, note.per_s, note.left_ms};
  reported.why_not.assign(note.why_not, strnlen(note.why_not, sizeof note.why_not));
  return reported;
}

void PeerNotes::on_report(ReplicaId from, const PeerNote& note, std::int64_t now_ns) {
  if (value(from) >= peers_.size()) return;
  Peer& p = peers_[value(from)];
  p.note = note;
  p.last_received_ns = now_ns;
  p.request_ns = 0;
  if (note.asks == 0) return;
  p.answer_requested = true;
  due_ns_ = now_ns;
}

void PeerNotes::on_drained(ReplicaId from, const DrainedNote& note) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const ReplicaId replica{static_cast<std::uint8_t>(i)};
    if (replica == self_ || !note.has(replica)) continue;
    Peer& p = peers_[i];
    const bool first_hand = replica == from;
    p.leaves = p.leaves || first_hand;
    if (!p.there && (first_hand || p.absence == Absence::kUnknown)) {  // NOTES-2
      p.absence = Absence::kDrained;
    }
  }
}

void PeerNotes::on_host(ReplicaId from, const HostNote& note) {
  if (value(from) < peers_.size()) peers_[value(from)].host = note;
}

DrainedNote PeerNotes::drained() const noexcept {
  DrainedNote note;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const Peer& p = peers_[i];
    if (!p.there && p.absence == Absence::kDrained)
      note.add(ReplicaId{static_cast<std::uint8_t>(i)});
  }
  return note;
}

bool PeerNotes::is_note_due(const Peer& p, bool unsettled, std::int64_t now_ns) const noexcept {
  if (!p.there) return false;
  if (p.answer_requested || p.sent != version_) return true;
  return (unsettled || p.repeats > 0) && now_ns - p.sent_ns >= kRepeatNs;
}

std::vector<ReplicaId> PeerNotes::due(const PeerNote& own,
                                      std::span<const consensus::MemberStatus> members,
                                      std::int64_t now_ns) {
  if (version_ == 0 || !same(own, own_)) ++version_;
  own_ = own;
  const bool unsettled = is_unsettled(own);
  std::array<bool, kReplicasMax> connected{};
  for (const consensus::MemberStatus& m : members) {
    if (m.id != self_ && value(m.id) < connected.size()) connected[value(m.id)] = m.connected;
  }
  std::vector<ReplicaId> to;
  due_ns_ = kNever;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    Peer& p = peers_[i];
    if (p.there != connected[i]) {  // NOTES-1: another process, or none
      // A note that arrived just before the connection was seen is from the connected process.
      const bool early = connected[i] && p.note && now_ns - p.last_received_ns < kAnswerNs;
      const Peer before = p;
      p = {};
      p.there = connected[i];
      p.was_there = before.was_there || p.there;
      if (!p.there) p.absence = before.leaves ? Absence::kDrained : Absence::kLost;
      if (early) {
        p.note = before.note;
        p.host = before.host;
        p.last_received_ns = before.last_received_ns;
      }
    }
    if (is_note_due(p, unsettled, now_ns)) {
      to.push_back(ReplicaId{static_cast<std::uint8_t>(i)});
    } else if (p.there && (unsettled || p.repeats > 0)) {
      due_ns_ = std::min(due_ns_, p.sent_ns + kRepeatNs);
    }
  }
  return to;
}

void PeerNotes::sent(ReplicaId to, bool was_sent, std::int64_t now_ns) {
  Peer& p = peers_[value(to)];
  if (was_sent) {
    p.repeats = p.sent != version_ ? kRepeats : p.repeats - (p.repeats > 0);
    p.sent = version_;
    p.sent_ns = now_ns;
    p.answer_requested = false;
  }
  if (!was_sent || p.repeats > 0 || is_unsettled(own_)) {
    due_ns_ = std::min(due_ns_, now_ns + kRepeatNs);
  }
}

std::vector<ReplicaId> PeerNotes::ask(std::int64_t now_ns) {
  std::vector<ReplicaId> to;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    Peer& p = peers_[i];
    if (!p.there || p.request_ns != 0 || now_ns - p.last_received_ns < kOldNs) continue;
    p.request_ns = now_ns;
    to.push_back(ReplicaId{static_cast<std::uint8_t>(i)});
  }
  return to;
}

PeerView PeerNotes::seen(ReplicaId peer, ReplicaId leader, std::int64_t now_ns) const {
  const Peer& p = peers_[value(peer)];
  PeerView seen;
  seen.was_there = p.was_there;
  seen.receives_log = receives_log(leader, peer);
  if (!p.there && p.absence != Absence::kUnknown) seen.drained = p.absence == Absence::kDrained;
  if (!p.there) return seen;
  seen.silent = p.request_ns != 0 && now_ns - p.request_ns > kAnswerNs;
  if (!p.note) return seen;
  seen.reported = reported(peer);
  seen.applied = p.note->applied;
  seen.host = p.host;
  return seen;
}

std::optional<control::Readiness> PeerNotes::reported(ReplicaId peer) const {
  const Peer& p = peers_[value(peer)];
  if (!p.there || !p.note) return std::nullopt;
  return readiness_of(*p.note);
}

bool PeerNotes::receives_log(ReplicaId leader, ReplicaId replica) const noexcept {
  if (value(leader) >= peers_.size() || !peers_[value(leader)].note) return true;
  const PeerNote& note = *peers_[value(leader)].note;
  if ((note.flags & PeerNote::kLeads) == 0) return true;
  return (note.receives_log[value(replica) / 64] >> (value(replica) % 64) & 1) != 0;
}

}  // namespace crane::replica
