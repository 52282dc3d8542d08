// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's own proposals: BUBBLE when its server wants turns that nothing else grants, TIME
// when a deadline of the server comes (proxy/clients/grants.h decides).  What that decision was
// based on is kept, so that a node that is about to sleep sees whether the server moved on.
//
// Threads: the node's one thread; the server's threads write the words that are read here.
// INVARIANT OWN-1  Nothing is proposed here while an earlier entry has not been admitted, unless
//                  the server ran out of turns since.

#include <cstdint>
#include <functional>

#include "dmt/base/ids.h"
#include "dmt/layout.h"
#include "proxy/clients/grants.h"

namespace crane::node {

class GrantProposer {
 public:
  struct Now {
    Index applied{};   // the last entry that the own server admitted
    Index proposed{};  // the last one that this leader proposed
    std::int64_t virtual_ns = 0;
  };
  using Propose = std::function<void(EntryType type, GrantTurns grant)>;

  GrantProposer(dmt::Layout& layout, const proxy::GrantOptions& options) noexcept
      : w_(layout), policy_(options) {}

  // Another reign begins.
  void lead() noexcept { seen_applied_ = Index{}; }
  // Nothing is proposed for now.
  void pause() noexcept { due_ns_ = proxy::kNever; }
  void step(const Now& now, const Propose& propose);
  // What step() has seen has changed since.
  bool has_news(Index applied, Index proposed) const noexcept;
  // Virtual time at which to decide again.
  std::int64_t due_ns() const noexcept { return due_ns_; }

  // The grant of the last input of a batch, and that one was proposed.
  GrantTurns input_grant() const noexcept { return policy_.input_grant(); }
  void input_proposed() noexcept { policy_.input_proposed(); }

 private:
  bool is_idle() const noexcept;
  bool is_stalled() const noexcept;

  dmt::Layout& w_;
  proxy::GrantPolicy policy_;
  Index seen_applied_{};
  bool seen_stalled_ = false, seen_low_ = false;
  std::int64_t due_ns_ = proxy::kNever;
};

}  // namespace crane::node
