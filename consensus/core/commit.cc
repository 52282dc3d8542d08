// SPDX-License-Identifier: Apache-2.0
// Commit rule `disk`: what the store gets, what the leader hears, what counts (DESIGN C1, C4).
#include "consensus/core/commit.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "consensus/core/replica.h"

namespace crane::consensus::core {

// Until the log holds an entry of the promised view, only committed entries are certain to stay
// (CORE-D3).
Cursor Replica::storable() const {
  const bool final = phase_ == Phase::kLeading || (phase_ == Phase::kNone && repaired_);
  return final ? end_ : commit_;
}

Cursor Replica::consumed() const {
  if (keep_ && keep_->pos < deliver_.pos && !mutant(Mutant::kKeepIgnored))
    return *keep_;  // CORE-C7
  return disk() && durable_.store.stored().pos < deliver_.pos ? durable_.store.stored()
                                                              : deliver_;  // CORE-D4
}

void Replica::pump_store() {
  if (!disk() || (!following() && phase_ == Phase::kNone)) return;
  if (!durable_.store.outstanding()) {
    const Cursor from = durable_.store.stored();
    const Cursor limit = storable();
    Cursor to = limit;
    if (limit.pos > from.pos + config_.store_bytes_max) {
      to = from;
      EntryHeader h;
      while (to.pos < limit.pos && ring_.follows(to, h = ring_.header_at(to.pos))) {
        const Cursor further = LogRing::after(h);
        if (further.pos - from.pos > config_.store_bytes_max && to.pos > from.pos) break;
        to = further;
      }
    }
    if (to.pos > from.pos) {
      const std::uint64_t sequence = durable_.store.begin(to);
      durable_.giving_commit = std::min(commit_.last.index, to.last.index);
      emit(StoreEntries{sequence, from.pos, to.pos, from.last, to.last, commit_.last, commit_.pos});
      if (mutant(Mutant::kAckBeforeSync)) {
        durable_.store.finish_early();
        count_commit();
      }
    }
  }
  report_durable();
}

// Sends one cumulative index, in a cell and as a request.  The request wakes a leader that waits
// for it.  A request can be lost; then the leader reads the cell.
void Replica::report_durable() {
  const Viewstamp last = durable_.store.stored().last;
  const ReplicaId leader = view_owner(promised_);
  if (!following() || leader == self()) return;
  if (last.view != promised_ && !mutant(Mutant::kDurableAnyView)) return;  // CORE-D2
  if (last.index <= durable_.reported) return;
  durable_.reported = last.index;
  emit(SetCell{kDurableCell, {value(promised_), value(last.view), value(last.index)}});
  Message m = message(MessageType::kDurable);
  m.view = promised_;
  m.last = last;
  m.end_pos = durable_.store.stored().pos;
  send(leader, m);
}

void Replica::on_durable(ReplicaId id, View reported_in, Viewstamp last) {
  if (phase_ != Phase::kLeading) return;
  const bool own = reported_in == promised_ && last.view == promised_;
  if (!own && !mutant(Mutant::kDurableAnyView)) return;  // CORE-D2
  Peer& p = peers_[value(id)];
  const Index index = std::min(last.index, end_.last.index);
  if (index <= p.durable) return;
  p.durable = index;
  count_commit();
}

void Replica::read_durable(ReplicaId id) {
  Peer& p = peers_[value(id)];
  if (now_.now_ns < durable_read_due(p)) return;
  p.durable_read_ns = now_.now_ns;
  emit(ReadCell{id, kDurableCell, token(OpKind::kReadDurable, id)});
}

std::uint64_t Replica::durable_read_due(const Peer& p) const {
  if (!disk() || commit_ == end_ || p.state != PeerState::kStreaming) return ~std::uint64_t{0};
  return std::max(p.durable_read_ns, reign_->progress_ns) + kDurableReadNs;
}

void Replica::on_read_durable(ReplicaId id, const Completion& e) {
  Cell cell{};
  if (!e.ok || e.data.size() != sizeof cell) return;
  std::memcpy(cell.data(), e.data.data(), sizeof cell);
  on_durable(id, View{cell[kDurablePromise]},
             {View{cell[kDurableView]}, Index{cell[kDurableIndex]}});
}

// C4: the index that a majority's stores hold.  The leader counts itself only up to its own durable
// index.  Only entries of its view count, so START is among them.
void Replica::count_durable() {
  std::array<Index, kReplicasMax> held;
  std::size_t n = 0;
  const Viewstamp own = durable_.store.stored().last;
  if (votes() && own.view == promised_) held[n++] = own.index;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    const bool counts = members().voter(ReplicaId{i}) || mutant(Mutant::kLearnerCounts);  // CORE-M6
    if (ReplicaId{i} != self() && counts && peers_[i].durable > Index{0}) {
      held[n++] = peers_[i].durable;
    }
  }
  std::size_t needed = members().quorum();
  if (mutant(Mutant::kMinorityCommit) && needed > 1) --needed;
  if (n < needed) return;
  const auto nth = held.begin() + static_cast<std::ptrdiff_t>(needed) - 1;
  std::nth_element(held.begin(), nth, held.begin() + static_cast<std::ptrdiff_t>(n),
                   std::greater<>());
  advance_commit(*nth);
}

// Disk mode: the uncommitted entries are in the memory of a majority that can still be written to.
// Another leader would wait for the same disks.
bool Replica::disks_are_slow() const {
  if (!disk() || mutant(Mutant::kDeposedByDisk)) return false;
  return members().quorum_of([this](ReplicaId id) {
    const Peer& p = peers_[value(id)];
    return id == self() ||
           (p.state == PeerState::kStreaming && p.acked_index > commit_.last.index &&
            now_.now_ns - p.written_ns <= config_.progress_timeout_ns);
  });
}

// Disk mode, while a commit waits for disks: when to check whether an idle follower can still be
// written to.
std::uint64_t Replica::probe_due(const Peer& p) const {
  const bool waits = disk() && commit_ != end_;
  if (!waits || p.state != PeerState::kStreaming || p.commit_outstanding) return ~std::uint64_t{0};
  return std::max(p.written_ns, reign_->progress_ns) + config_.progress_timeout_ns / 4;
}

// --- promises -----------------------------------------------------------------------------------

void Replica::store_promise() {
  if (!disk()) {
    durable_.promise_stored = promised_;
  } else if (durable_.promise_stored < promised_) {
    durable_.promise_asked_ns = now_.now_ns;
    emit(StorePromise{promised_});
  }
}

bool Replica::promise_kept() const {
  return durable_.promise_stored >= promised_ || mutant(Mutant::kPromiseNotDurable);
}

// A candidate waits for its own disk.
bool Replica::stores_promise() const {
  return phase_ == Phase::kFencing && !promise_kept() && !mutant(Mutant::kConstantTimeout);
}

void Replica::on(const PromiseStored& e) {
  durable_.promise_stored = std::max(durable_.promise_stored, e.view);
  if (e.view == promised_) {
    durable_.promise_took_ns = std::min(now_.now_ns - durable_.promise_asked_ns, kPromiseMaxNs);
  }
  if (role_ != Role::kStarting) settle_grant();
}

// --- answers of the store -----------------------------------------------------------------------

void Replica::on(const Stored& e) {
  durable_.stored_commit = std::max(durable_.stored_commit, durable_.giving_commit);
  if (durable_.store.finish(e.sequence, {e.end_pos, e.last})) return count_commit();
  if (!following()) return;
  end_ = commit_;  // a torn copy whose CRC matched once (U11): scan again
  unrepair();
  scan();
}

void Replica::on(const StoreFailed& e) { fail(e.why); }

// From now on, a grant or changed bytes may replace the log after the commit index.
void Replica::unrepair() {
  repaired_ = false;
  forget_configs(end_.last.index);
  durable_.reported = Index{0};
  if (!mutant(Mutant::kDurableAnyView)) durable_.store.back_to(commit_);  // CORE-D3
}

}  // namespace crane::consensus::core
