// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/leadership.h"

#include "dmt/base/assert.h"

namespace crane::replica {

void Leadership::role(consensus::Role role, View view, ReplicaId leader) {
  if (leads_ && (role != consensus::Role::kLeader || view != view_)) {
    leads_ = false;  // LEAD-3
    deposed_ = true;
    busy_ = false;
    clock_.follow();
  }
  if (value(leader) < kReplicasMax && view != led_view_) {
    led_view_ = view;
    ++reigns_;
    times_.forget();
  }
  role_ = role;
  view_ = view;
  leader_ = leader;
  if (role == consensus::Role::kLeader && !leads_) {
    leads_ = true;
    last_ = Index{};
    clock_.lead();
  }
  changed_ = true;
}

Result<Leadership::Proposal> Leadership::begin_proposal(EntryType type, std::int64_t now_ns) {
  if (!leads_) return Error{Code::kNotLeader, 0, "not the leader"};  // LEAD-3
  if (type == EntryType::kStart) {
    CRANE_ASSERT(!started());  // LEAD-1
  } else if (!started()) {
    return Error{Code::kBusy, 0, "START comes first"};
  }
  return Proposal{type, view_, clock_.next_stamp(now_ns)};
}

void Leadership::proposed(const Proposal& proposal, const Result<Index>& index,
                          std::int64_t now_ns) {
  busy_ = !index.ok() && index.error().code == Code::kBusy;
  if (!index.ok()) return;
  if (proposal.type == EntryType::kStart) {
    started_view_ = proposal.view;
    start_ = index.value();
  }
  times_.proposed(index.value(), now_ns);
  clock_.proposed(now_ns);
  last_ = index.value();
  // Entries of the stall rule grant nothing; their admission is not waited for.
  const bool waited_for =
      proposal.type != EntryType::kPreempt && proposal.type != EntryType::kPassed;
  if (waited_for) proposed_ = index.value();
}

}  // namespace crane::replica
