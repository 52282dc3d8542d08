// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica that recovers runs what it missed before it seeks the lead: a server that is far behind
// cannot serve, and clients would wait for it although another replica might serve at once.
//
// How far that is its own log does not say: it may end before the checkpoint, and what the group
// has committed since comes when a leader writes it.  So it asks until a leader has answered.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT CATCHUP-1  A replica that recovers does not seek the lead before it has run all that a
//                      leader had committed when it was asked, and all that it knows to be
//                      committed itself; or kLimitNs after it began: some replica has to lead.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "dmt/base/ids.h"

namespace crane::node {

// The question, and the leader's answer: outside of the log, and may be lost.
struct CommittedMessage {
  std::uint64_t life = 0;       // of the replica that asks
  std::uint64_t answers = 0;    // 1: it does
  std::uint64_t committed = 0;  // by the group, then
};

class CatchUp {
 public:
  struct Seen {
    bool leads = false;
    bool follows = false;  // a leader that is known
    Index applied{};       // the server has come so far,
    Index committed{};     // the own log so far
  };
  enum class Outcome : std::uint8_t { kNothing, kCaughtUp, kStillBehind };

  // The own log held entries up to `missed` when the node began behind a checkpoint.  `seeks`: it
  // has others to leave the lead to.
  void begin(Index missed, bool seeks, std::int64_t now_ns) noexcept {
    missing_until_ = missed;
    if (!seeks) return;
    until_ns_ = now_ns + kLimitNs;
    life_ = static_cast<std::uint64_t>(now_ns);
  }
  // What was asked of this replica up to here was asked of its life before.
  Index missed() const noexcept { return missing_until_; }
  bool active() const noexcept { return until_ns_ != 0; }

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

  // Once kCaughtUp or kStillBehind: the replica seeks the lead from here on (CATCHUP-1).
  Outcome step(const Seen& seen, std::int64_t now_ns) noexcept {
    if (!active()) return Outcome::kNothing;
    // When all have died together none leads before one is eligible again.
    const bool alone = !seen.follows && now_ns >= until_ns_ - kLimitNs + kHearNs;
    const bool ran = seen.applied >= std::max(seen.committed, group_);
    const bool there = seen.leads || ((answered_ || alone) && ran);
    if (!there && now_ns < until_ns_) return Outcome::kNothing;
    until_ns_ = 0;
    return there ? Outcome::kCaughtUp : Outcome::kStillBehind;
  }

  static constexpr std::int64_t kLimitNs = 20'000'000'000;
  // A leader is heard within this time if there is one.
  static constexpr std::int64_t kHearNs = 1'000'000'000;
  static constexpr std::int64_t kAskNs = 50'000'000;  // and it is asked so often

 private:
  Index missing_until_{};
  std::int64_t until_ns_ = 0;
  std::uint64_t life_ = 0;
  std::int64_t ask_ns_ = 0;
  bool answered_ = false;
  Index group_{};  // as the leader has said
};

}  // namespace crane::node
