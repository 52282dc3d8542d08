// SPDX-License-Identifier: Apache-2.0
#pragma once
// How fast clients are read: as fast as the own server admits, and while a majority's servers are
// near (proxy/replica/role/flow_control.h).  A follower tells its leader how far its server is.
//
// Pure.  Threads: the node's one thread.
// Clients are paused while the pipeline is over its bounds, consensus takes nothing, or followers
// are waited for; they go on only when half of the pipeline is free again.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dmt/base/ids.h"
#include "proxy/replica/role/flow_control.h"
#include "proxy/replica/role/grants.h"

namespace crane::replica {

// The leader's side.
class ClientPacing {
 public:
  struct Inputs {
    bool leads = false;
    bool busy = false;    // consensus took no more
    bool full = false;    // the log has no room before the next checkpoint
    bool paused = false;  // clients are
    Index applied{};
    Index proposed{};
    std::uint64_t waiting_bytes = 0;  // committed, and not admitted by the own server
    // Needed while anybody_late() only.
    std::span<const ReplicaId> others;  // voters that are there, but for this replica
    std::size_t voters = 0;
  };
  struct Next {
    bool pause = false;   // clients are to be paused from here on
    bool report = false;  // an operator is to hear that clients wait for followers
  };

  // `lag_ns`: as far as a majority may be behind; 0: followers are not waited for.
  explicit ClientPacing(std::int64_t lag_ns) noexcept : flow_(lag_ns) {}

  void lead() noexcept { flow_.lead(); }
  void heard(ReplicaId from, const ProgressMessage& note, std::int64_t now_ns) noexcept {
    flow_.heard(from, note, now_ns);
  }
  FollowerLag lag_of(ReplicaId who, std::int64_t now_ns) const noexcept {
    return flow_.lag_of(who, now_ns);
  }
  bool anybody_late(std::int64_t now_ns) const noexcept { return flow_.anybody_late(now_ns); }
  Next step(const Inputs& seen, std::int64_t now_ns) noexcept;
  // Followers are waited for (FLOW-1).
  bool waits() const noexcept { return since_ns_ != 0; }
  std::int64_t waited_ns() const noexcept { return waited_ns_; }
  // For how long clients have been waiting for followers, or for room in the log, without a break.
  std::int64_t held_ns(std::int64_t now_ns) const noexcept {
    return held_since_ns_ == 0 ? 0 : now_ns - held_since_ns_;
  }

 private:
  bool note(bool waits, std::int64_t now_ns) noexcept;

  FlowControl flow_;
  std::int64_t since_ns_ = 0;   // 0: none is waited for
  std::int64_t waited_ns_ = 0;  // in all
  std::int64_t held_since_ns_ = 0;
  std::int64_t reported_ns_ = 0;
};

// A follower's side.
class ProgressReporter {
 public:
  static constexpr std::int64_t kLagStepNs = 2'000'000;

  // This replica began with less than the log has; `life` tells this return from others.
  void recovers(std::uint64_t life) noexcept { life_ = life; }
  void caught_up() noexcept { life_ = 0; }

  void committed(Index last, std::int64_t now_ns) noexcept { report_.committed(last, now_ns); }
  // How late the own server is, 0: less than kLateNs and not recovering.
  struct Lag {
    std::int64_t ns = 0;
    Index ran{};
  };
  // When elections are to know another lag: it changed by kLagStepNs, or the server has run more.
  std::optional<Lag> new_lag(Index applied, bool recovers, std::int64_t now_ns) noexcept;
  // How old the oldest entry is that the own server, which is at `applied`, has not taken.
  std::int64_t behind_ns(Index applied, std::int64_t now_ns) const noexcept {
    return report_.behind_ns(applied, now_ns);
  }
  struct Next {
    std::optional<ProgressMessage> note;  // for the leader; one that is lost is followed by another
    std::int64_t due_ns = kNever;
  };
  // `recovers`: it has not caught up yet.
  Next step(Index applied, bool recovers, std::int64_t now_ns) noexcept;

 private:
  ProgressReport report_;
  std::uint64_t life_ = 0;
  Lag lag_;  // as new_lag() gave it last
};

}  // namespace crane::replica
