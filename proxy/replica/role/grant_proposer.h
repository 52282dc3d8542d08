// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's own proposals: BUBBLE when its server wants turns that nothing else grants, TIME
// when a deadline of the server arrives (grants.h decides).  The inputs of the last decision are
// kept, so that a node that is about to sleep can check whether the server has moved on.
//
// Pure.  Threads: the node's one thread.
// INVARIANT OWN-1  Nothing is proposed while an earlier entry has not been admitted, unless the
//                  server ran out of turns since.

#include <cstdint>

#include "dmt/base/ids.h"
#include "proxy/replica/role/grants.h"

namespace crane::replica {

// The server's need for turns, as its scheduler reports it at one moment.
struct TurnsNeeded {
  bool stalled = false;          // it wants turns, has none, and no thread runs
  bool low = false;              // it will want some soon
  bool slice = false;            // sliced threads wait for a bubble
  bool at_soft_barrier = false;  // no thread runs, and some threads wait at a soft barrier
  std::int64_t next_deadline_ns = kNever;  // virtual time
};

class GrantProposer {
 public:
  struct Now {
    Index applied{};   // the last entry that this replica's server admitted
    Index proposed{};  // the last entry that this leader proposed
    std::int64_t virtual_ns = 0;
  };

  explicit GrantProposer(const GrantOptions& options) noexcept : policy_(options) {}

  // Another reign begins.
  void lead() noexcept {
    seen_applied_ = Index{};
    policy_.lead();
  }
  // Stops proposing for now.
  void pause() noexcept { due_ns_ = kNever; }
  // Returns what to propose now.
  Decision step(const Now& now, const TurnsNeeded& wanted) noexcept;
  // True if the inputs of the last step() have changed.
  bool has_news(Index applied, Index proposed, const TurnsNeeded& wanted) const noexcept;
  // The virtual time at which to decide again.
  std::int64_t due_ns() const noexcept { return due_ns_; }
  // Virtual time.  The server need not wake the node for a deadline at or after this: the timer may
  // be late for it on purpose (GRANT-3).
  std::int64_t timer_ns() const noexcept { return timer_ns_; }

  // The grant of the last input of a batch; input_proposed() reports that it was proposed.
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
