// SPDX-License-Identifier: Apache-2.0
// Who may write this replica's log: promise, fence, scan, grant, in this order (DESIGN C1, Mu 4.2).
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
      // Somebody had a majority against us: find out whether ours still listens.
      for (std::uint8_t i = 0; i < config_.replicas; ++i) {
        peers_[i].told = Index{0};
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
  placed_ = false;
  follow(from);
  move(pending_.state, GrantState::kPending);
  pending_.from = from;
  pending_.view = m.view;
  pending_.stale_end = end_;
  settle_grant();
}

void Replica::promise(View view) {
  CRANE_ASSERT(view > promised_);  // P1
  promised_ = view;
  note_view(view);
  stop_fetch();
  unrepair();
  heard_commit_ = held_known_ = Index{0};
  move(pending_.state, GrantState::kNone);
  publish_promise();
  store_promise();
}

// Brings the permission to where the promise wants it, one step per answer of the fabric.
void Replica::settle_grant() {
  if (fence_ != FenceState::kNone) return;
  if (mutant(Mutant::kSkipFence)) writer_ = kNoReplica;
  if (writer_ != kNoReplica) {
    emit(RevokeWrites{writer_});
    move(fence_, FenceState::kRevoking);
    return;
  }
  if (!promise_kept()) return;  // D1: PromiseStored comes here again
  if (phase_ == Phase::kFencing) {
    scan();
    if (!votes()) return step_down();  // M6: the writer's last word was a CONFIG without this one
    ask_for_grants();
  } else if (pending_.state == GrantState::kPending) {
    scan();  // P2
    emit(PermitWrites{pending_.from});
    move(fence_, FenceState::kPermitting);
  }
}

void Replica::on(const Revoked& e) {
  if (role_ == Role::kStarting) {
    if (revokes_left_ == 0 || --revokes_left_ > 0) return;
    return enter();
  }
  if (fence_ != FenceState::kRevoking || e.peer != writer_) return;
  writer_ = kNoReplica;
  move(fence_, FenceState::kNone);
  settle_grant();
}

void Replica::on(const Permitted& e) {
  if (fence_ != FenceState::kPermitting) return;
  CRANE_ASSERT(writer_ == kNoReplica);  // P3
  move(fence_, FenceState::kNone);
  if (e.ok) writer_ = e.peer;
  const bool asked = pending_.state == GrantState::kPending;
  if (asked && pending_.from == e.peer && pending_.view == promised_) {
    move(pending_.state, e.ok ? GrantState::kGiven : GrantState::kNone);
    if (e.ok) answer_grant(e.key);
    // A process that was started again in the view it knew, with a log that needs no repair:
    // nothing else would tell its owner.
    if (e.ok && repaired_ && told_leader_ != leader_ && leader_ == e.peer) tell_role(leader_);
    return;
  }
  settle_grant();  // the promise moved on meanwhile: fence this one too
}

void Replica::answer_grant(Key key) {
  Message m = message(MessageType::kGrant);
  m.view = promised_;
  m.key = key;
  if (mutant(Mutant::kScanBeforeFence)) {
    m.last = pending_.stale_end.last;
    m.end_pos = pending_.stale_end.pos;
  }
  send(view_owner(promised_), m);
}

void Replica::refuse(ReplicaId to, View view) {
  Message m = message(MessageType::kRefuse);
  m.view = view;
  send(to, m);
}

}  // namespace crane::consensus::core
