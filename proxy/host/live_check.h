// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries out live checking.  The decisions are made by a state machine
// (proxy/replica/check/cuts.h); this class takes digests and evidence for it, sends and proposes
// them, and reports and stores the differences.
//
// Threads: the node's one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/sequence/output.h"
#include "proxy/host/config.h"
#include "proxy/host/entry_counts.h"
#include "proxy/replica/action_loop.h"
#include "proxy/replica/check/cuts.h"
#include "proxy/replica/role/leadership.h"

namespace crane::node {

class NodeMode;
class Proposals;
class ReplicaServer;

class LiveCheck {
 public:
  // The references must outlive it.
  LiveCheck(const Config& config, ReplicaServer& server, const replica::Leadership& leadership,
            Proposals& proposals, NodeMode& mode);

  // The log is open; `group` must outlive this object.
  void opened(consensus::Consensus& group) noexcept { group_ = &group; }
  // The replica begins at a checkpoint at log index `at`, with this state of the alarms.
  void restore(Index at, std::uint64_t verified, std::uint64_t restarted_from);

  // A HASH entry was committed; called in log order.
  void committed(const consensus::EntryView& entry);
  // This replica is in the minority at the cut of log index `at`: it must not continue.
  using Diverged = std::optional<replica::cuts::Diverged>;
  // The own server admitted an entry; Outputs already has all output before it.  `accepts_digests`:
  // the replica has not reached its end.
  Diverged admitted(const OutputHeader& header, bool accepts_digests, std::int64_t now_ns) {
    return machine_.awaits(header.conn) ? admitted_hash(header, accepts_digests, now_ns)
                                        : std::nullopt;
  }

  // --- the leader's
  void lead() { step(replica::cuts::BecameLeader{}, now_ns_); }
  void on_report(ReplicaId from, const proxy::Digest& digest);
  // Returns the latest time for the next call.  `serves`: it leads, takes clients, and continues.
  std::int64_t step(bool serves, const EntryCounts& entries, std::int64_t now_ns);

  const proxy::Alarms& alarms() const noexcept { return machine_.alarms(); }
  proxy::Verdict verdict() const noexcept { return machine_.verdict(); }
  // CLOCK_MONOTONIC at the last cut at which this replica and a majority were equal; 0: never.
  std::int64_t verified_ns() const noexcept { return machine_.verified_ns(); }

 private:
  Diverged admitted_hash(const OutputHeader& header, bool accepts_digests, std::int64_t now_ns);
  void step(const replica::cuts::Event& event, std::int64_t now_ns);
  void carry_out(replica::cuts::LookAtMembers&);
  void carry_out(replica::cuts::Propose& proposal);
  void carry_out(replica::cuts::TakeDigest& take);
  void carry_out(replica::cuts::SendDigest& digest);
  void carry_out(replica::cuts::Compared& compared);
  void carry_out(replica::cuts::Verified&);
  void carry_out(replica::cuts::StartAgain& begin);
  void carry_out(replica::cuts::Raise& alarm);
  void carry_out(replica::cuts::Diverged& diverged);

  replica::cuts::Reign reign() const;
  std::string differences(const proxy::Evidence& theirs, ReplicaId other) const;
  std::string keep_evidence(Index at) const;
  std::string_view operation_names() const noexcept;
  std::string maps() const;

  const Config& config_;
  ReplicaServer& server_;
  const replica::Leadership& leadership_;
  Proposals& proposals_;
  NodeMode& mode_;
  consensus::Consensus* group_ = nullptr;
  replica::Cuts machine_;
  replica::ActionLoop<replica::cuts::ActionList> loop_;
  std::int64_t now_ns_ = 0;   // of the last step
  proxy::Evidence evidence_;  // of the last cut
  Diverged diverged_;
};

}  // namespace crane::node
