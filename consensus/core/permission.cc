// SPDX-License-Identifier: Apache-2.0
// The right to write this replica's log: promise, fence, scan, grant, in this order (DESIGN C1, Mu
// 4.2).
#include "consensus/core/replica.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

void Replica::on_request(const Message& m) {
  const ReplicaId from{m.from};
  if (view_owner(m.view) != from) return;
  note_view(m.view);
  const bool leads = phase_ == Phase::kLeading;
  const bool sticky = (leads || (phase_ == Phase::kNone && leader_alive() && leader_ != from)) &&
                      !mutant(Mutant::kNoStickiness);
  if (m.view < promised_ || (m.view > promised_ && sticky && m.transfer == 0)) {
    refuse(from, m.view);
    if (leads && m.view > promised_) {
      // The candidate had a majority against us: check whether our own majority still listens.
      for (std::uint8_t i = 0; i < config_.replicas; ++i) {
        peers_[i].sent_commit = Index{0};
        if (ReplicaId{i} != self()) flush_commit(ReplicaId{i});
      }
    }
    return;
  }
  if (phase_ != Phase::kNone) step_down();
  if (m.view > promised_) {
    note_lost_leader(m.transfer != 0 ? ElectionCause::kTransfer : ElectionCause::kSuspicion);
    promise(m.view);
  }
  stop_fetch();
  unrepair();
  entrance_.placed = false;
  follow(from);
  move(permission_.grant, GrantState::kPending);
  permission_.grant_to = from;
  permission_.grant_view = m.view;
  permission_.stale_end = end_;
  settle_grant();
}

void Replica::promise(View view) {
  CRANE_ASSERT(view > promised_);  // CORE-P1
  promised_ = view;
  note_view(view);
  stop_fetch();
  unrepair();
  received_commit_ = truncation_.held_known = Index{0};
  move(permission_.grant, GrantState::kNone);
  publish_promise();
  store_promise();
}

// Makes the permission match the promise, one step per answer of the fabric.
void Replica::settle_grant() {
  if (permission_.fence != FenceState::kNone) return;
  if (mutant(Mutant::kSkipFence)) permission_.writer = kNoReplica;
  if (permission_.writer != kNoReplica) {
    emit(RevokeWrites{permission_.writer});
    move(permission_.fence, FenceState::kRevoking);
    return;
  }
  if (!promise_kept()) return;  // CORE-D1: PromiseStored comes here again
  if (phase_ == Phase::kFencing) {
    scan();
    if (!votes()) return step_down();  // CORE-M6: a last CONFIG before the fence took this vote
    ask_for_grants();
  } else if (permission_.grant == GrantState::kPending) {
    scan();  // CORE-P2
    emit(PermitWrites{permission_.grant_to});
    move(permission_.fence, FenceState::kPermitting);
  }
}

void Replica::on(const Revoked& e) {
  if (role_ == Role::kStarting) {
    if (permission_.revokes_left == 0 || --permission_.revokes_left > 0) return;
    return enter();
  }
  if (permission_.fence != FenceState::kRevoking || e.peer != permission_.writer) return;
  permission_.writer = kNoReplica;
  move(permission_.fence, FenceState::kNone);
  settle_grant();
}

void Replica::on(const Permitted& e) {
  if (permission_.fence != FenceState::kPermitting) return;
  CRANE_ASSERT(permission_.writer == kNoReplica);  // CORE-P3
  move(permission_.fence, FenceState::kNone);
  if (e.ok) permission_.writer = e.peer;
  const bool asked = permission_.grant == GrantState::kPending;
  if (asked && permission_.grant_to == e.peer && permission_.grant_view == promised_) {
    move(permission_.grant, e.ok ? GrantState::kKeyReceived : GrantState::kNone);
    if (e.ok) answer_grant(e.key);
    // A process that restarted in the view it knew, with a log that needs no repair: no other event
    // reports the leader to its owner.
    if (e.ok && repaired_ && owner_leader_ != leader_ && leader_ == e.peer) report_role(leader_);
    return;
  }
  settle_grant();  // a newer promise came meanwhile: fence this writer too
}

void Replica::answer_grant(Key key) {
  Message m = message(MessageType::kGrant);
  m.view = promised_;
  m.key = key;
  if (mutant(Mutant::kScanBeforeFence)) {
    m.last = permission_.stale_end.last;
    m.end_pos = permission_.stale_end.pos;
  }
  send(view_owner(promised_), m);
}

void Replica::refuse(ReplicaId to, View view) {
  Message m = message(MessageType::kRefuse);
  m.view = view;
  send(to, m);
}

}  // namespace crane::consensus::core
