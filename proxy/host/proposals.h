// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries out what a replica proposes while it leads (replica/role: Leadership, GrantProposer,
// ClientPacing): START, clients' inputs, and grants for the time.  Also sets how fast clients are
// read for that.
//
// Threads: the node's one thread.
// INVARIANT PROPOSE-1  At a START the leader begins with a clean state: neither progress of a
//                      follower nor a grant from an earlier reign counts.

#include <cstdint>
#include <span>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "dmt/sequence/entry.h"
#include "proxy/clients/proxy.h"
#include "proxy/host/agreed.h"
#include "proxy/host/config.h"
#include "proxy/replica/role/grant_proposer.h"
#include "proxy/replica/role/leadership.h"
#include "proxy/replica/role/pacing.h"

namespace crane::node {

class Proposals {
 public:
  // The log, which the node opens after it has made this object.
  class Owner {
   public:
    virtual Result<Index> append(const replica::Leadership::Proposal& proposal, GrantTurns grant,
                                 std::span<const std::byte> body) = 0;
    virtual std::vector<consensus::MemberStatus> members() = 0;

   protected:
    ~Owner() = default;
  };

  // The references must outlive it.
  Proposals(Owner& owner, const Config& config, const Agreed& agreed, dmt::Layout& layout,
            replica::Leadership& leadership, proxy::Proxy& proxy);

  // kBusy: try again in a later round; kNotLeader: impossible in this view.
  Result<Index> propose(EntryType type, GrantTurns grant, std::span<const std::byte> body,
                        std::int64_t now_ns);
  // Proposes START; false: not in this round, or never.
  bool start(std::int64_t now_ns);
  // Another replica leads.
  void pause() noexcept { grants_.pause(); }
  // Proposes the inputs that clients have sent.
  void propose_inputs(std::int64_t now_ns);
  // Proposes BUBBLE or TIME if needed.  `applied`: the last entry that the own server admitted.
  void propose_grants(Index applied, std::int64_t now_ns);
  // Whether something has changed since then that needs a grant, or an outage is over.  After an
  // outage clients are read at once, because the entry that ended it may be one that no server
  // admits (such as PASSED), which rings no doorbell.
  bool has_news(Index applied) const noexcept;
  GrantTurns input_grant() const noexcept { return grants_.input_grant(); }
  // The time of the next grant, CLOCK_MONOTONIC; kNever: only an event leads to one.
  std::int64_t due_ns() const noexcept;

  // --- how fast clients are read
  // A follower's progress.
  void on_report(ReplicaId from, const replica::ProgressMessage& note, std::int64_t now_ns) {
    pacing_.on_report(from, note, now_ns);
  }
  // `waiting_bytes` are committed, but not yet admitted by this replica's server.  `full` is true
  // if the log has no room.
  void pace(Index applied, std::uint64_t waiting_bytes, bool full, std::int64_t now_ns);
  std::int64_t waited_ns() const noexcept { return pacing_.waited_ns(); }
  std::int64_t held_ns(std::int64_t now_ns) const noexcept { return pacing_.held_ns(now_ns); }
  replica::FollowerLag follower_lag(ReplicaId peer, std::int64_t now_ns) const noexcept {
    return pacing_.lag_of(peer, now_ns);
  }

 private:
  // Not while paused: paused clients are checked again soon.
  bool may_read_all() const noexcept {
    return leadership_.waits_for_inputs() && proxy_.leading() && !proxy_.paused();
  }

  Owner& owner_;
  const Config& config_;
  const Agreed& agreed_;
  dmt::Layout& layout_;
  replica::Leadership& leadership_;
  proxy::Proxy& proxy_;
  replica::GrantProposer grants_;
  replica::ClientPacing pacing_;
  std::vector<ReplicaId> others_;  // connected voters; a member to reuse its memory
};

}  // namespace crane::node
