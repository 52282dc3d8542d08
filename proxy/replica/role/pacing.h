// SPDX-License-Identifier: Apache-2.0
#pragma once
// How fast clients are read: as fast as this replica's server admits, and while a majority's
// servers are near (proxy/replica/role/flow_control.h).  A follower reports to its leader how far
// its server is.
//
// Clients are paused while the pipeline is over its bounds, consensus accepts nothing, or the
// leader waits for followers.  They continue only when half of the pipeline is free again.
//
// Pure.  Threads: the node's one thread.

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
    bool busy = false;    // consensus accepted no more
    bool full = false;    // the log has no room before the next checkpoint
    bool paused = false;  // clients are paused
    Index applied{};
    Index proposed{};
    std::uint64_t waiting_bytes = 0;  // committed, and not admitted by this replica's server
    // Needed only while has_late_follower().
    std::span<const ReplicaId> others;  // connected voters without this replica
    std::size_t voters = 0;
  };
  struct Next {
    bool pause = false;   // pauses clients from now on
    bool report = false;  // reports to the operator that clients wait for followers
  };

  // `lag_ns`: how far a majority may be behind; 0: the leader does not wait for followers.
  explicit ClientPacing(std::int64_t lag_ns) noexcept : flow_(lag_ns) {}

  void lead() noexcept { flow_.lead(); }
  void on_report(ReplicaId from, const ProgressMessage& note, std::int64_t now_ns) noexcept {
    flow_.on_report(from, note, now_ns);
  }
  FollowerLag lag_of(ReplicaId peer, std::int64_t now_ns) const noexcept {
    return flow_.lag_of(peer, now_ns);
  }
  bool has_late_follower(std::int64_t now_ns) const noexcept {
    return flow_.has_late_follower(now_ns);
  }
  Next step(const Inputs& seen, std::int64_t now_ns) noexcept;
  // The leader waits for followers (FLOW-1).
  bool waits() const noexcept { return since_ns_ != 0; }
  std::int64_t waited_ns() const noexcept { return waited_ns_; }
  // For how long clients have waited for followers, or for room in the log, without a break.
  std::int64_t held_ns(std::int64_t now_ns) const noexcept {
    return held_since_ns_ == 0 ? 0 : now_ns - held_since_ns_;
  }

 private:
  bool note(bool waits, std::int64_t now_ns) noexcept;

  FlowControl flow_;
  std::int64_t since_ns_ = 0;   // 0: the leader waits for none
  std::int64_t waited_ns_ = 0;  // in total
  std::int64_t held_since_ns_ = 0;
  std::int64_t reported_ns_ = 0;
};

// A follower's side.
class ProgressReporter {
 public:
  static constexpr std::int64_t kLagStepNs = 2'000'000;

  // This replica began with less than the log has; `life` distinguishes this return from others.
  void recovers(std::uint64_t life) noexcept { life_ = life; }
  void caught_up() noexcept { life_ = 0; }

  void committed(Index last, std::int64_t now_ns) noexcept { report_.committed(last, now_ns); }
  // How late this replica's server is.  0: less than kLateNs, and not recovering.
  struct Lag {
    std::int64_t ns = 0;
    Index ran{};
  };
  // The new lag for elections when it changed by kLagStepNs, or the server has run more; else
  // nullopt.
  std::optional<Lag> new_lag(Index applied, bool recovers, std::int64_t now_ns) noexcept;
  // The age of the oldest entry that this replica's server, which is at `applied`, has not taken.
  std::int64_t behind_ns(Index applied, std::int64_t now_ns) const noexcept {
    return report_.behind_ns(applied, now_ns);
  }
  struct Next {
    std::optional<ProgressMessage> note;  // for the leader; if it is lost, another one follows
    std::int64_t due_ns = kNever;
  };
  // `recovers`: the replica has not caught up yet.
  Next step(Index applied, bool recovers, std::int64_t now_ns) noexcept;

 private:
  ProgressReport report_;
  std::uint64_t life_ = 0;
  Lag lag_;  // the last result of new_lag()
};

}  // namespace crane::replica
