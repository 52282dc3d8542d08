// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica that recovers runs what it missed before it seeks the lead: a server that is far behind
// cannot serve, and clients would wait for it although another replica might serve at once.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT CATCHUP-1  A replica that recovers does not seek the lead before it has run everything
//                      that is committed, or kLimitNs after it began: some replica has to lead.

#include <cstdint>

#include "dmt/base/ids.h"

namespace crane::node {

class CatchUp {
 public:
  struct Seen {
    bool leads = false;
    bool follows = false;  // a leader that is known
    Index applied{};       // the server has come so far,
    Index committed{};     // the group so far
  };
  enum class Outcome : std::uint8_t { kNothing, kCaughtUp, kStillBehind };

  // The own log held entries up to `missed` when the node began behind a checkpoint.  `seeks`: it
  // has others to leave the lead to.
  void begin(Index missed, bool seeks, std::int64_t now_ns) noexcept {
    missing_until_ = missed;
    if (seeks) until_ns_ = now_ns + kLimitNs;
  }
  // What was asked of this replica up to here was asked of its life before.
  Index missed() const noexcept { return missing_until_; }
  bool active() const noexcept { return until_ns_ != 0; }

  // Once kCaughtUp or kStillBehind: the replica seeks the lead from here on (CATCHUP-1).
  Outcome step(const Seen& seen, std::int64_t now_ns) noexcept {
    if (!active()) return Outcome::kNothing;
    // When all have died together none leads before one is eligible again.
    const bool heard = seen.follows || now_ns >= until_ns_ - kLimitNs + kHearNs;
    const bool there = seen.leads || (heard && seen.applied >= seen.committed);
    if (!there && now_ns < until_ns_) return Outcome::kNothing;
    until_ns_ = 0;
    return there ? Outcome::kCaughtUp : Outcome::kStillBehind;
  }

  static constexpr std::int64_t kLimitNs = 20'000'000'000;
  // A leader is heard within this time if there is one.
  static constexpr std::int64_t kHearNs = 1'000'000'000;

 private:
  Index missing_until_{};
  std::int64_t until_ns_ = 0;
};

}  // namespace crane::node
