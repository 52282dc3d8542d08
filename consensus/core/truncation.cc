// SPDX-License-Identifier: Apache-2.0
// Which entries stores may drop: those below a checkpoint that a majority of the voters hold
// (DESIGN C9).
//
// "This replica holds a checkpoint at entry I or later" is true from the first report until the
// replica loses its disk, and then it recovers under another incarnation.  The report therefore
// needs no view: it may arrive late, twice or by way of another replica.  The leader counts it for
// the very incarnations that the members in force name, and appends TRUNCATION(I) when a majority
// reaches I. Stores are cut by the committed entry, for three reasons: it follows the CONFIG that
// it was counted by; a deposed leader cannot commit one; and a replica that was away finds it in
// the log.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "consensus/core/replica.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

// --- memory mode ---------------------------------------------------------------------------------

// Nothing is kept before a place, even one ahead of the delivered entries: a lagging replica would
// wait for room that only this place makes.  Released entries are not taken back: a leader that was
// informed may be overwriting them, and a restart scans the log from the published consumed
// position.
void Replica::on(const Keep& e) {
  if (disk() || role_ == Role::kStarting) return;
  if (e.from && keep_ && e.from->pos < keep_->pos) return;
  if (mutant(Mutant::kKeepDelivered) && e.from && e.from->pos > deliver_.pos) return;
  keep_ = e.from;
  const bool given_up = keep_ && keep_->pos < published_.pos;
  if (given_up && !mutant(Mutant::kKeepTakenBack)) keep_ = published_;
  publish_promise();
  publish_status();
}

// --- checkpoints of the replicas ----------------------------------------------------------------

void Replica::on(const Checkpointed& e) {
  if (!disk() || e.at <= truncation_.held) return;
  truncation_.held = e.at;
  truncation_.held_at_ns = now_.now_ns;
  recount_held();
  if (following()) report_held();
  if (mutant(Mutant::kDropUncovered))
    truncation_.covered = std::max(truncation_.covered, std::min(truncation_.held, committed()));
}

bool Replica::must_report_held() const {
  return truncation_.held > truncation_.held_known && leader_ != kNoReplica;
}

// Repeated until the leader confirms.
void Replica::report_held() {
  if (!must_report_held() || now_.now_ns < truncation_.held_at_ns) return;
  truncation_.held_at_ns = now_.now_ns + config_.ask_timeout_ns;
  Message m = message(MessageType::kHolds);
  m.view = promised_;
  send(leader_, m);
}

// Every message of a disk group contains the sender's checkpoint.
void Replica::note_held(const Message& m) {
  if (!disk() || m.held == Index{0}) return;
  Peer& p = peers_[m.from];
  const bool same = p.held_incarnation == m.incarnation;
  if (same && m.held <= p.held) return;
  p.held = m.held;
  p.held_incarnation = m.incarnation;
  recount_held();
}

void Replica::on_holds(const Message& m) {
  if (m.view != promised_) return;
  if (ReplicaId{m.from} == view_owner(promised_)) {
    truncation_.held_known = std::max(truncation_.held_known, Index{m.size});
  } else if (phase_ == Phase::kLeading) {
    Message answer = message(MessageType::kHolds);
    answer.view = promised_;
    answer.size = value(peers_[m.from].held);
    send(ReplicaId{m.from}, answer);
  }
}

// --- the leader ---------------------------------------------------------------------------------

// The last entry for which a majority of the voters in force have checkpoints at it or after it.
Index Replica::held_by_majority() const {
  std::array<Index, kReplicasMax> held;
  std::size_t n = 0;
  if (votes()) held[n++] = truncation_.held;
  for (std::uint8_t i = 0; i < config_.replicas; ++i) {
    const ReplicaId id{i};
    if (id == self() || !members().voter(id)) continue;
    const Peer& p = peers_[i];
    const bool it_is = members().incarnation(id) == p.held_incarnation;
    if (it_is || mutant(Mutant::kCoverTheLost)) held[n++] = p.held;
  }
  std::size_t needed = members().quorum();
  if (mutant(Mutant::kCoverMinority) && needed > 1) --needed;
  if (n < needed) return Index{0};
  const auto nth = held.begin() + static_cast<std::ptrdiff_t>(needed) - 1;
  std::nth_element(held.begin(), nth, held.begin() + static_cast<std::ptrdiff_t>(n),
                   std::greater<>());
  return *nth;
}

// After every step: appends TRUNCATION when more is covered, and drops covered entries.
void Replica::pump_truncation() {
  if (!disk()) return;
  if (role_ == Role::kLeader && reign_->count_held && membership_.transfer_to == kNoReplica) {
    const Index held = std::min(held_by_majority(), commit_.last.index);
    const std::uint64_t index = value(held);
    const bool news = held > std::max(truncation_.covered, reign_->covering);
    if (!news || room_for(entry_bytes(sizeof index), ring_.ring_bytes() / kReserveDivisor)) {
      reign_->count_held = false;
    }
    if (news && !reign_->count_held) {
      reign_->covering = held;
      if (commit_ == end_) reign_->progress_ns = now_.now_ns;
      append(kTruncation, 0, 0, std::as_bytes(std::span(&index, 1)));
      pump_store();
    }
  }
  drop_stored();
}

// --- the store ----------------------------------------------------------------------------------

void Replica::on_truncation_point(std::span<const std::byte> payload) {
  std::uint64_t index = 0;
  if (payload.size() != sizeof index) return;
  std::memcpy(&index, payload.data(), sizeof index);
  truncation_.covered = std::max(truncation_.covered, Index{index});
}

// CORE-D5.  The store has these entries, and knows that they are committed.
void Replica::drop_stored() {
  if (truncation_.covered <= truncation_.dropped ||
      durable_.store.stored().last.index < truncation_.covered)
    return;
  if (durable_.stored_commit < truncation_.covered) return;
  CRANE_ASSERT(truncation_.covered <= commit_.last.index);  // CORE-D5
  truncation_.dropped = truncation_.covered;
  emit(DropStored{truncation_.covered});
}

}  // namespace crane::consensus::core
