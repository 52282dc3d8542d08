// SPDX-License-Identifier: Apache-2.0
#pragma once
// This replica's role in the group, and what it may propose in it.
//
// A leader proposes START first, and serves clients only when its own server has admitted that
// START.  A change of the role is noted when consensus reports it.  The node carries it out at a
// point where no connection is in use (take_deposed(), take_changed()).
//
// Pure.  Threads: the node's one thread.
// INVARIANT LEAD-1  START is proposed exactly once per view that this node leads, before anything
//                   else.
// INVARIANT LEAD-2  Clients are accepted only after this replica's server admitted its START (C8).
// INVARIANT LEAD-3  Nothing is proposed after leadership was lost, until START of the next view
//                   that this node leads.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"
#include "proxy/replica/role/commit_times.h"
#include "proxy/replica/role/virtual_clock.h"

namespace crane::replica {

class Leadership {
 public:
  // --- reports of consensus
  void role(consensus::Role role, View view, ReplicaId leader);
  // An entry of the application was committed: virtual time has reached its stamp.
  void committed(Viewstamp at, std::int64_t stamp_ns, std::int64_t now_ns) {
    const bool fresh = at.view == view_ && value(leader_) < kReplicasMax;
    clock_.committed(stamp_ns, now_ns, fresh);
    if (!leads_) return;
    clock_.progressed(now_ns, last_ > at.index);
    times_.committed(at.index, now_ns);
  }
  // The log is gone: there is nothing left to hand over.
  void stop_leading() noexcept { leads_ = false; }

  // --- changes to carry out; true once per change
  bool take_deposed() noexcept { return std::exchange(deposed_, false); }
  bool take_changed() noexcept { return std::exchange(changed_, false); }
  bool has_change() const noexcept { return deposed_ || changed_; }

  // --- the role
  consensus::Role role() const noexcept { return role_; }
  View view() const noexcept { return view_; }
  // The leader of `view`; kReplicasMax or more while it is unknown.
  ReplicaId leader() const noexcept { return leader_; }
  bool leads() const noexcept { return leads_; }
  // The number of reigns whose leader this replica knew.
  std::uint64_t reigns() const noexcept { return reigns_; }
  // It leads and has proposed START, so it may propose other entries (LEAD-1).
  bool started() const noexcept { return leads_ && started_view_ == view_; }
  // Its server, which has admitted the entries up to `applied`, knows that it leads (LEAD-2).
  bool admitted(Index applied) const noexcept { return started() && applied >= start_; }

  // --- proposing
  // The header of an entry that is proposed now.  kNotLeader: never in this view; kBusy: not before
  // START (LEAD-1).
  struct Proposal {
    EntryType type{};
    View view{};
    std::int64_t stamp_ns = 0;
  };
  Result<Proposal> begin_proposal(EntryType type, std::int64_t now_ns);
  // The answer of consensus: the entry's place in the log, or kBusy: try in a later round.
  void proposed(const Proposal& proposal, const Result<Index>& index, std::int64_t now_ns);
  // The last proposal that clients or the server wait for.
  Index proposed() const noexcept { return proposed_; }
  // Consensus accepted no more the last time.
  bool busy() const noexcept { return busy_; }
  // How long this replica's proposals took until they were committed.
  const LatencyHistogram& commit_times() const noexcept { return times_.taken(); }
  void ask_again() noexcept { busy_ = false; }

  // --- virtual time (virtual_clock.h)
  // The node runs, and sleeps until `until_ns` at the latest.
  void runs(std::int64_t now_ns, std::int64_t until_ns) noexcept { clock_.runs(now_ns, until_ns); }
  // An outage is over: all clients must be read once before virtual time continues.
  bool waits_for_inputs() const noexcept { return clock_.waits_for_inputs(); }
  std::uint64_t outages() const noexcept { return clock_.outages(); }
  // Their input was proposed; returns how far virtual time is behind then.
  std::int64_t resume_time(std::int64_t now_ns) noexcept {
    clock_.resume(now_ns);
    return clock_.behind_ns(now_ns);
  }
  // According to the wall clock, virtual time is `virtual_ns`.  Called before START.
  void aim(std::int64_t virtual_ns, std::int64_t now_ns) noexcept {
    clock_.aim(virtual_ns, now_ns);
  }
  std::int64_t now(std::int64_t now_ns) const noexcept { return clock_.now(now_ns); }
  std::int64_t mono_at(std::int64_t virtual_ns) const noexcept {
    return clock_.mono_at(virtual_ns);
  }

 private:
  VirtualClock clock_;
  consensus::Role role_ = consensus::Role::kFollower;
  View view_{};
  ReplicaId leader_{};
  View led_view_{};  // the last view whose leader was known
  std::uint64_t reigns_ = 0;
  CommitTimes times_;
  bool leads_ = false;
  bool deposed_ = false;  // clients must still be reset
  bool changed_ = false;
  View started_view_{};  // the view of the last START proposed by this replica (LEAD-1)
  Index start_{};        // that START
  Index last_{};         // the last entry that this replica proposed
  Index proposed_{};
  bool busy_ = false;
};

}  // namespace crane::replica
