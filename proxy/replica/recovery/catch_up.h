// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a replica that recovers has run what it missed.
//
// How far that is its own log does not say: it may end before the checkpoint, and what the group
// has committed since comes when a leader writes it.  So it asks until a leader has answered.
//
// A replica may lead before it has caught up, as the last choice: elections prefer servers that are
// further (consensus/DESIGN.md, C6).  No time limit decides that.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// What is committed grows while the replica runs it, and a follower's server may have to wait for
// its leader's (dmt/stall.h).  So the goal is what was committed when a leader answered, and from
// there on it is enough that the server is near.
//
// INVARIANT CATCHUP-1  A replica has caught up when its server is there and has run all that a
//                      leader had committed when it answered, and all that the own log then knew to
//                      be committed, and is near the end of the log; until then it says that it
//                      lags.

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
    bool follows = false;        // a leader that is known
    Index applied{};             // the server has come so far,
    Index committed{};           // the own log so far
    std::int64_t behind_ns = 0;  // age of the oldest entry that the server has not run
  };

  // The own log held entries up to `missed` when the node began.
  void begin(Index missed, std::int64_t now_ns) noexcept {
    missing_until_ = missed;
    began_ns_ = now_ns;
    active_ = true;
    life_ = static_cast<std::uint64_t>(now_ns);
  }
  // What was asked of this replica up to here was asked of its life before.
  Index missed() const noexcept { return missing_until_; }
  bool active() const noexcept { return active_; }

  // What to ask the leader now.
  std::optional<CommittedMessage> question(bool follows, std::int64_t now_ns) noexcept {
    if (!active() || answered_ || !follows || now_ns < ask_ns_) return std::nullopt;
    ask_ns_ = now_ns + kAskNs;
    return CommittedMessage{life_, 0, 0};
  }
  void heard(const CommittedMessage& answer) noexcept {
    if (answer.life != life_) return;  // asked by an earlier process
    answered_ = true;
    group_ = std::max(group_, Index{answer.committed});
  }

  // What the group had committed, as a leader has said.
  Index group() const noexcept { return group_; }

  // True once, when it has caught up.
  bool step(const Inputs& seen, std::int64_t now_ns) noexcept {
    if (!active()) return false;
    if (mutant_ == Mutant::kCaughtUpAtOnce) return !(active_ = false);
    // When all have died together none leads before one of them is elected.
    const bool alone = !seen.follows && now_ns >= began_ns_ + kHearNs;
    if (!has_goal_ && (seen.leads || answered_ || alone)) {
      has_goal_ = true;
      goal_ = std::max(seen.committed, group_);
    }
    if (mutant_ == Mutant::kGoalMoves) goal_ = std::max(goal_, seen.committed);
    if (!has_goal_ || seen.applied < goal_ || seen.behind_ns > kNearNs) return false;
    active_ = false;
    return true;
  }

  // A leader is heard within this time if there is one.
  static constexpr std::int64_t kHearNs = 1'000'000'000;
  static constexpr std::int64_t kAskNs = 50'000'000;  // and it is asked so often
  static constexpr std::int64_t kNearNs = 100'000'000;

 private:
  Mutant mutant_;
  Index missing_until_{};
  bool active_ = false;
  std::int64_t began_ns_ = 0;
  std::uint64_t life_ = 0;
  std::int64_t ask_ns_ = 0;
  bool answered_ = false;
  Index group_{};          // as the leader has said
  bool has_goal_ = false;  // known once it has, or there is none to ask
  Index goal_{};
};

}  // namespace crane::replica
