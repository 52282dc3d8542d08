// SPDX-License-Identifier: Apache-2.0
#pragma once
// How fast clients are read: as fast as the own server admits, and while a majority's servers are
// near (proxy/clients/flow_control.h).  A follower tells its leader how far its server is.
//
// Threads: the node's one thread.
// Clients are paused while the pipeline is over its bounds, consensus takes nothing, or followers
// are waited for; they go on only when half of the pipeline is free again.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "proxy/clients/flow_control.h"
#include "proxy/clients/grants.h"

namespace crane::node {

// The leader's side.
class ClientPacing {
 public:
  struct Seen {
    bool leads = false;
    bool busy = false;    // consensus took no more
    bool full = false;    // the log has no room before the next checkpoint
    bool paused = false;  // clients are
    Index applied{};
    Index proposed{};
    std::uint64_t waiting_bytes = 0;  // committed, and not admitted by the own server
  };
  using Members = std::function<std::vector<consensus::MemberStatus>()>;

  // `lag_ns`: as far as a majority may be behind; 0: followers are not waited for.
  ClientPacing(ReplicaId self, std::int64_t lag_ns, Members members);

  void lead() noexcept { flow_.lead(); }
  void heard(ReplicaId from, const replica::ProgressMessage& note, std::int64_t now_ns) noexcept {
    flow_.heard(from, note, now_ns);
  }
  proxy::FollowerLag lag_of(ReplicaId who, std::int64_t now_ns) const noexcept {
    return flow_.lag_of(who, now_ns);
  }
  // Whether clients are to be paused from here on.
  bool step(const Seen& seen, std::int64_t now_ns);
  // Followers are waited for (FLOW-1).
  bool waits() const noexcept { return since_ns_ != 0; }
  std::int64_t waited_ns() const noexcept { return waited_ns_; }
  // For how long clients have been waiting for followers, or for room in the log, without a break.
  std::int64_t held_ns(std::int64_t now_ns) const noexcept {
    return held_since_ns_ == 0 ? 0 : now_ns - held_since_ns_;
  }

 private:
  bool must_wait(bool leads, std::int64_t now_ns) const;
  void note(bool waits, std::int64_t now_ns);

  const ReplicaId self_;
  const std::int64_t lag_ns_;
  const Members members_;
  proxy::FlowControl flow_;
  std::int64_t since_ns_ = 0;   // 0: none is waited for
  std::int64_t waited_ns_ = 0;  // in all
  std::int64_t held_since_ns_ = 0;
  std::int64_t logged_ns_ = 0;
};

// A follower's side.
class ProgressReporter {
 public:
  static constexpr std::int64_t kLagStepNs = 2'000'000;

  // A note that is lost is followed by the next one.
  using Send = std::function<void(const replica::ProgressMessage& note)>;

  explicit ProgressReporter(Send send) : send_(std::move(send)) {}

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
  // `recovers`: it has not caught up yet.
  std::int64_t step(Index applied, bool recovers, std::int64_t now_ns);

 private:
  const Send send_;
  proxy::ProgressReport report_;
  std::uint64_t life_ = 0;
  Lag lag_;  // as new_lag() gave it last
};

}  // namespace crane::node
