// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's own proposals: BUBBLE when its server wants turns that nothing else grants, TIME
// when a deadline of the server comes (grants.h decides).  What that decision was based on is kept,
// so that a node that is about to sleep sees whether the server moved on.
//
// Pure.  Threads: the node's one thread.
// INVARIANT OWN-1  Nothing is proposed here while an earlier entry has not been admitted, unless
//                  the server ran out of turns since.

#include <cstdint>

#include "dmt/base/ids.h"
#include "proxy/replica/role/grants.h"

namespace crane::replica {

// What the server's scheduler says of its need for turns, read at one moment.
struct TurnsNeeded {
  bool stalled = false;                    // it wants turns, has none, and no thread runs
  bool low = false;                        // it will soon want some
  bool slice = false;                      // sliced threads wait for a bubble
  bool at_soft_barrier = false;            // no thread runs, and some wait at a soft barrier
  std::int64_t next_deadline_ns = kNever;  // virtual time
};

class GrantProposer {
 public:
  struct Now {
    Index applied{};   // the last entry that the own server admitted
    Index proposed{};  // the last one that this leader proposed
    std::int64_t virtual_ns = 0;
  };

  explicit GrantProposer(const GrantOptions& options) noexcept : policy_(options) {}

  // Another reign begins.
  void lead() noexcept {
    seen_applied_ = Index{};
    policy_.lead();
  }
  // Nothing is proposed for now.
  void pause() noexcept { due_ns_ = kNever; }
  // What is to be proposed now.
  Decision step(const Now& now, const TurnsNeeded& wanted) noexcept;
  // What step() has seen has changed since.
  bool has_news(Index applied, Index proposed, const TurnsNeeded& wanted) const noexcept;
  // Virtual time at which to decide again.
  std::int64_t due_ns() const noexcept { return due_ns_; }
  // The server need not ring for a deadline that is not before this, virtual time: the timer may be
  // late for one on purpose (GRANT-3).
  std::int64_t timer_ns() const noexcept { return timer_ns_; }

  // The grant of the last input of a batch, and that one was proposed.
  GrantTurns input_grant() const noexcept { return policy_.input_grant(); }
  void input_proposed() noexcept { policy_.input_proposed(); }

 private:
  GrantPolicy policy_;
  Index seen_applied_{};
  bool seen_stalled_ = false, seen_low_ = false, seen_slice_ = false;
  std::int64_t due_ns_ = kNever;
  std::int64_t timer_ns_ = kNever;
};

}  // namespace crane::replica
