// SPDX-License-Identifier: Apache-2.0
// In disk mode, a follower that was away fetches entries that left the leader's ring from peers'
// stores (APUS 5.2, DESIGN C4, C9).
//
// The leader sends kBehind and continues without the follower; a voter that refuses a candidate for
// this reason sends kBehind, too.  The follower fences the leader and asks a peer (the leader last)
// for the committed entries after its own commit index.  It reads them one-sided from the peer's
// fetch region into its own ring, where they are stored and delivered as if the leader had written
// them. It repeats this until the leader's ring has the rest; then it asks the leader to write
// again. Every entry proves its own place (consensus/core/log.h).  If the peer overwrites the
// region for another reader, the entries do not match, and the follower requests them again.
#include <algorithm>
#include <cstring>

#include "consensus/core/replica.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

// --- the leader ---------------------------------------------------------------------------------

void Replica::send_behind(ReplicaId id) {
  Peer& p = peers_[value(id)];
  Message m = message(MessageType::kBehind);
  m.view = promised_;
  send(id, m);
  p.retry_at_ns = now_.now_ns + (config_.retry_ns << p.retry_power);
  p.retry_power = std::min(p.retry_power + 1, kRetryPowerMax);
}

void Replica::on_ready(const Message& m) {
  Peer& p = peers_[m.from];
  if (phase_ != Phase::kLeading || m.view != promised_ || p.state != PeerState::kBehind) return;
  p.cannot = m.type == MessageType::kCannot;
  if (p.cannot) return;
  set_state(p, PeerState::kIdle);
  p.retry_power = 0;
  p.retry_at_ns = now_.now_ns;
}

// --- the serving replica ------------------------------------------------------------------------

void Replica::on_fetch(const Message& m) {
  const ReplicaId to{m.from};
  if (!disk() || serve_.reading || (serve_.to != to && now_.now_ns < serve_.until_ns)) return;
  const Cursor& stored = durable_.store.stored();
  serve_.upto = stored.pos < commit_.pos && !mutant(Mutant::kServeUncommitted) ? stored : commit_;
  if (mutant(Mutant::kServeUncommitted)) serve_.upto = stored;
  serve_.from = {m.commit_pos, m.commit};
  serve_.to = to;
  serve_.asked = m.sequence;
  serve_.skip = m.skip;
  if (m.commit.index >= serve_.upto.last.index) return answer_fetch(to, 0);
  serve_.reading = true;
  emit(FetchEntries{++serve_.sequence, next(m.commit.index),
                    m.skip + fetch_bytes(ring_.ring_bytes())});
}

void Replica::on(const Fetched& e) {
  if (!serve_.reading || e.sequence != serve_.sequence) return;
  serve_.reading = false;
  Cursor at = serve_.from;
  std::uint64_t whole = 0;
  EntryHeader h;
  while (at.last.index < serve_.upto.last.index &&
         ring_.valid_bytes(at, e.bytes.subspan(whole), h)) {
    at = LogRing::after(h);
    whole += entry_bytes(h.length);
  }
  std::uint64_t size = 0;
  if (whole > serve_.skip) {
    size = std::min(whole - serve_.skip, fetch_bytes(ring_.ring_bytes()));
    ring_.put_fetched(e.bytes.subspan(serve_.skip, size));  // CORE-B1
    serve_.until_ns = now_.now_ns + config_.ask_timeout_ns;
  }
  answer_fetch(serve_.to, size);
}

void Replica::answer_fetch(ReplicaId to, std::uint64_t size) {
  Message m = message(MessageType::kFetched);
  m.sequence = serve_.asked;
  m.size = size;
  m.commit = serve_.upto.last;
  m.commit_pos = serve_.upto.pos;
  send(to, m);
}

// --- the fetching replica -----------------------------------------------------------------------

// Sent by the leader, or, with no view, by a voter that refused this candidate for that reason.
void Replica::on_behind(const Message& m) {
  const bool led = m.view != View{0};
  if (!following() || (!led && leader_alive())) return;
  if (led && m.view < promised_) return refuse(ReplicaId{m.from}, m.view);
  if (led && (m.view != promised_ || ReplicaId{m.from} != view_owner(promised_))) return;
  if (!disk()) {
    // L4: no replica has a store, so only a checkpoint helps.  If one was restored already, the
    // leader has not looked since.
    membership_.needs_checkpoint = !led || !entrance_.placed || commit_.pos < m.first_pos;
    if (membership_.needs_checkpoint) return;
    Message ready = message(MessageType::kReady);
    ready.view = promised_;
    return send(ReplicaId{m.from}, ready);
  }
  if (permission_.grant == GrantState::kPending || permission_.fence == FenceState::kPermitting)
    return;  // sent before the leader asked again
  fetch_.leader_first = m.first_pos;
  if (fetch_.state == FetchState::kReady) want_entries(0);  // kReady was lost, or came too early
  if (fetch_.state != FetchState::kNone) return;
  fetch_.led = led;
  fetch_.served = {};
  fetch_.have = 0;
  unrepair();
  want_entries(0);
  settle_grant();  // CORE-B2
}

void Replica::want_entries(std::uint64_t after_ns) {
  fetch_.state = FetchState::kWanting;
  fetch_.retry_at_ns = now_.now_ns + after_ns;
}

// After every step: takes in what was read while there is room, then requests more.
void Replica::pump_fetch() {
  if (fetch_.state == FetchState::kNone || permission_.fence != FenceState::kNone) return;
  if (!following()) return stop_fetch();
  CRANE_ASSERT(permission_.writer == kNoReplica);  // CORE-B2
  const bool due = now_.now_ns >= fetch_.retry_at_ns;
  if (fetch_.state == FetchState::kAsking && due) {
    ++fetch_.turn;
    want_entries(0);
  }
  if (fetch_.state != FetchState::kWanting) return;
  if (!take_fetched()) {
    fetch_.retry_at_ns = now_.now_ns + config_.period_active_ns;  // the ring is full
  } else if (fetched_enough()) {
    if (!fetch_.led) return stop_fetch();  // the voter may accept this candidate now
    fetch_.state = FetchState::kReady;
    Message m = message(MessageType::kReady);
    m.view = promised_;
    send(view_owner(promised_), m);
  } else if (due) {
    ask_for_entries();
  }
}

// True if the leader's ring has the rest, and will have it for a while.  False until this server
// has reported its position: the leader's ring may have lost more than its first position shows.
bool Replica::fetched_enough() const {
  return fetch_.served.pos > 0 && commit_.pos >= fetch_.leader_first &&
         commit_.pos + ring_.ring_bytes() / kReserveDivisor >= fetch_.served.pos;
}

// The others take turns, in a circle that starts after this replica's id.  The leader comes last,
// because it is busy.
ReplicaId Replica::server() const {
  const std::uint8_t others = config_.replicas - 1;
  const std::uint8_t leader = value(fetch_.led ? view_owner(promised_) : self());
  std::uint8_t left = fetch_.turn % others;
  if (fetch_.led && left == others - 1) return ReplicaId{leader};
  for (std::uint8_t id = value(self());;) {
    id = static_cast<std::uint8_t>((id + 1) % config_.replicas);
    if (id != leader && id != value(self()) && left-- == 0) return ReplicaId{id};
  }
}

void Replica::ask_for_entries() {
  for (std::uint8_t i = 0; i < config_.replicas && !peers_[value(server())].up; ++i) ++fetch_.turn;
  fetch_.state = FetchState::kAsking;
  fetch_.retry_at_ns = now_.now_ns + config_.ask_timeout_ns;
  Message m = message(MessageType::kFetch);
  m.skip = fetch_.have;
  m.sequence = ++fetch_.sequence;
  send(server(), m);
}

void Replica::on_fetched(const Message& m) {
  if (fetch_.state != FetchState::kAsking || m.sequence != fetch_.sequence) return;
  if (m.promised > promised_ && !mutant(Mutant::kFetchAnyView)) {  // CORE-B3
    if (!fetch_.led) return promise(m.promised);
    ++fetch_.turn;
    return want_entries(config_.retry_ns);
  }
  fetch_.served = {m.commit_pos, m.commit};
  if (m.size > 0) {
    fetch_.refusals = 0;
    membership_.needs_checkpoint = false;
    fetch_.state = FetchState::kReading;
    fetch_.read = token(OpKind::kReadFetch, ReplicaId{m.from});
    const std::uint64_t room = read_bytes_.size() - fetch_.have;
    const std::uint64_t most = fetch_bytes(ring_.ring_bytes());
    return emit(ReadLog{ReplicaId{m.from}, ring_.fetch_offset(), std::min({m.size, room, most}),
                        fetch_.read});
  }
  ++fetch_.turn;
  want_entries(config_.retry_ns);
  if (m.commit.index <= commit_.last.index) return;  // the server knows no more than this replica
  if (++fetch_.refusals + 1 < config_.replicas) return want_entries(0);
  fetch_.refusals = 0;
  membership_.needs_checkpoint = true;
  want_entries(config_.retry_ns << kRetryPowerMax);
  if (!fetch_.led) return;
  Message cannot = message(MessageType::kCannot);
  cannot.view = promised_;
  send(view_owner(promised_), cannot);
}

void Replica::on_read_fetch(const Completion& e) {
  if (fetch_.state != FetchState::kReading || e.token != fetch_.read) return;
  if (!e.ok || e.data.size() > read_bytes_.size() - fetch_.have) {
    ++fetch_.turn;
    return want_entries(config_.retry_ns);
  }
  std::memcpy(read_bytes_.data() + fetch_.have, e.data.data(), e.data.size());
  fetch_.have += e.data.size();
  want_entries(0);
}

// Takes whole entries from what was read; returns false when the ring has no room for the next one.
// The entries are committed, so a local entry that differs never was committed, nor any entry after
// it.  A local entry that is the same stays, with the entries after it (U1).
bool Replica::take_fetched() {
  Cursor at = commit_;
  std::uint64_t used = 0;
  bool room = true;
  while (fetch_.have - used >= kHeaderBytes) {
    const std::span<const std::byte> rest{read_bytes_.data() + used, fetch_.have - used};
    EntryHeader h;
    if (!ring_.valid_bytes(at, rest, h)) {
      if (ring_.follows(at, h) && rest.size() < entry_bytes(h.length)) break;  // a part is read
      fetch_.have = used;  // overwritten for another peer
      ++fetch_.turn;
      break;
    }
    const std::uint64_t size = entry_bytes(h.length);
    const EntryHeader own = ring_.header_at(at.pos);
    const bool holds = at.pos < end_.pos && ring_.follows(at, own);
    if (!holds || (own.view != h.view && !mutant(Mutant::kKeepOwnTail))) {
      room = at.pos + size <= published_.pos + ring_.ring_bytes();
      if (!room && consumed() != published_) {
        publish_promise();
        publish_status();
        room = at.pos + size <= published_.pos + ring_.ring_bytes();
      }
      if (!room) break;
      put_fetched(at, h, rest.first(size));
    }
    at = holds && own.view != h.view && mutant(Mutant::kKeepOwnTail) ? LogRing::after(own)
                                                                     : LogRing::after(h);
    used += size;
  }
  std::memmove(read_bytes_.data(), read_bytes_.data() + used, fetch_.have - used);
  fetch_.have -= used;
  learn_commit(at.last.index);
  return room;
}

void Replica::put_fetched(const Cursor& at, const EntryHeader& h,
                          std::span<const std::byte> entry) {
  CRANE_ASSERT(permission_.writer == kNoReplica && at.pos >= deliver_.pos);  // CORE-B2, CORE-C4
  end_ = at;
  forget_configs(end_.last.index);
  ring_.put(at.pos, entry);
  if (h.type == kConfig) note_config(h, entry.subspan(kHeaderBytes, h.length));
  end_ = LogRing::after(h);
  high_pos_ = std::max(high_pos_, end_.pos);
  members_changed();
}

}  // namespace crane::consensus::core
