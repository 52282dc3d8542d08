// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a recovering replica has run what it missed.
//
// Its own log does not show how much that is: the log may end before the checkpoint, and what the
// group has committed since arrives only when a leader sends it.  So the replica asks until a
// leader has answered.
//
// A replica may lead before it has caught up, as the last choice: elections prefer servers that are
// further (consensus/DESIGN.md, C6).  No time limit decides that.
//
// The committed log grows while the replica runs it, and a follower's server may have to wait for
// its leader's (dmt/stall.h).  So the goal is what was committed when a leader answered; from there
// on it is enough that the server is near.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
//
// INVARIANT CATCHUP-1  A replica has caught up when its server runs, is near the end of the log,
//                      and has run everything that a leader had committed when it answered, and
//                      everything that this replica's log knew to be committed then.  Until then
//                      the replica reports that it lags.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "dmt/base/ids.h"
#include "proxy/replica/messages.h"
#include "proxy/replica/mutant.h"

namespace crane::replica {

class CatchUp {
 public:
  explicit CatchUp(Mutant mutant = Mutant::kNone) noexcept : mutant_(mutant) {}

  struct Inputs {
    bool leads = false;
    bool follows = false;        // this replica follows a known leader
    Index applied{};             // the last entry that the server has admitted
    Index committed{};           // the last committed entry in this replica's log
    std::int64_t behind_ns = 0;  // age of the oldest entry that the server has not run
  };

  // This replica's log held entries up to `missed` when the node began.
  void begin(Index missed, std::int64_t now_ns) noexcept {
    missing_until_ = missed;
    began_ns_ = now_ns;
    active_ = true;
    life_ = static_cast<std::uint64_t>(now_ns);
  }
  // Requests in entries up to this one were for the previous process of this replica.
  Index missed() const noexcept { return missing_until_; }
  bool active() const noexcept { return active_; }
  // It has begun, and has ended: what the group commits from here on is not missed.
  bool ended() const noexcept { return life_ != 0 && !active_; }

  // Returns the question to the leader that is due now, if any.
  std::optional<CommittedMessage> question(bool follows, std::int64_t now_ns) noexcept {
    if (!active() || answered_ || !follows || now_ns < ask_ns_) return std::nullopt;
    ask_ns_ = now_ns + kAskNs;
    return CommittedMessage{life_, 0, 0};
  }
  void on_report(const CommittedMessage& answer) noexcept {
    if (answer.life != life_) return;  // the answer to an earlier process
    answered_ = true;
    group_ = std::max(group_, Index{answer.committed});
  }

  // The last index that the group had committed, according to a leader.
  Index group() const noexcept { return group_; }

  // True once, when it has caught up.
  bool step(const Inputs& seen, std::int64_t now_ns) noexcept {
    if (!active()) return false;
    if (mutant_ == Mutant::kCaughtUpAtOnce) return !(active_ = false);
    // When all replicas have died together, none leads before an election.
    const bool alone = !seen.follows && now_ns >= began_ns_ + kPeerWaitNs;
    if (!has_goal_ && (seen.leads || answered_ || alone)) {
      has_goal_ = true;
      goal_ = std::max(seen.committed, group_);
    }
    if (mutant_ == Mutant::kGoalMoves) goal_ = std::max(goal_, seen.committed);
    if (!has_goal_ || seen.applied < goal_ || seen.behind_ns > kNearNs) return false;
    active_ = false;
    return true;
  }

  // A leader, if there is one, is known within this time.
  static constexpr std::int64_t kPeerWaitNs = 1'000'000'000;
  static constexpr std::int64_t kAskNs = 50'000'000;  // between two questions
  static constexpr std::int64_t kNearNs = 100'000'000;

 private:
  Mutant mutant_;
  Index missing_until_{};
  bool active_ = false;
  std::int64_t began_ns_ = 0;
  std::uint64_t life_ = 0;
  std::int64_t ask_ns_ = 0;
  bool answered_ = false;
  Index group_{};          // according to the leader
  bool has_goal_ = false;  // known after the leader's answer, or if there is no leader
  Index goal_{};
};

}  // namespace crane::replica
