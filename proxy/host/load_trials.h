// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node tries out under load (paired_trial.h): whether it shares its server's processor, and
// whether it polls before it sleeps.  One at a time.
//
// Sharing: where a request is cheap one wake-up serves a batch and the caches are warm on one core;
// where the server works long between turns the node reads and sends meanwhile, elsewhere.
// Polling: a node that is awake needs no wake-up by its server or its clients, each of which costs
// more than a short wait; but the processor is one that they may need.  Until a trial has found
// out, a node polls while answers follow each other so fast that wake-ups are much of what they
// cost, if there is more than one processor.
//
// Threads: the node's only one.
// INVARIANT TRIAL-2  While one trial is under way no other begins.

#include <cstdint>
#include <optional>

#include "proxy/host/config.h"
#include "proxy/host/paired_trial.h"
#include "proxy/host/placement.h"

namespace crane::node {

class LoadTrials {
 public:
  // Answers of a window from which on a node polls unless a trial has said otherwise: 10,000/s.
  static constexpr std::uint64_t kManyAnswers = 250;

  explicit LoadTrials(const Config& config) : place_(config) {}

  // At every turn of the event loop; `answers`: that the server has written since the node's start.
  void step(std::uint64_t answers, std::int64_t now_ns) {
    if (placement_.due(now_ns) || polling_.due(now_ns)) end_windows(answers, now_ns);
  }
  // As the last trial left it; none: the node has no choice.
  std::optional<NodePlace> place() const noexcept;
  // Whether it polls now.
  bool polls() const noexcept { return polling_.way() == Way::kSecond; }

 private:
  void end_windows(std::uint64_t answers, std::int64_t now_ns);

  NodePlacement place_;
  PairedTrial placement_, polling_;  // the second ways: shares, polls
};

}  // namespace crane::node
