// SPDX-License-Identifier: Apache-2.0
#pragma once
// Load trials (paired_trial.h): the node tries under load whether to share its server's processor,
// and whether to poll before it sleeps.  Only one trial runs at a time.
//
// Sharing: if a request is cheap, sharing a core is better, because one wake-up serves a batch and
// the caches are warm.  If the server works long between turns, another core is better, because the
// node reads and sends meanwhile.
// Polling: a node that is awake needs no wake-up by its server or its clients, and each wake-up
// costs more than a short wait.  But the server or its clients may need the processor.  Before the
// first result, a node with more than one processor polls while answers follow each other so fast
// that wake-ups are a large part of their cost.
//
// Threads: the node's only one.
// INVARIANT TRIAL-2  While one trial is under way no other one begins.

#include <cstdint>
#include <optional>

#include "proxy/host/config.h"
#include "proxy/host/paired_trial.h"
#include "proxy/host/placement.h"

namespace crane::node {

class LoadTrials {
 public:
  // Answers per window (10,000/s) from which on a node polls until a trial gives another result.
  static constexpr std::uint64_t kManyAnswers = 250;

  explicit LoadTrials(const Config& config) : place_(config) {}

  // Call at every turn of the event loop.  `answers`: written by the server since the node's start.
  void step(std::uint64_t answers, std::int64_t now_ns) {
    if (placement_.due(now_ns) || polling_.due(now_ns)) end_windows(answers, now_ns);
  }
  // The result of the last trial; nullopt: the node has no choice.
  std::optional<NodePlace> place() const noexcept;
  // Whether the node currently polls.
  bool polls() const noexcept { return polling_.way() == Way::kSecond; }

 private:
  void end_windows(std::uint64_t answers, std::int64_t now_ns);

  NodePlacement place_;
  PairedTrial placement_, polling_;  // the second ways: shares, polls
};

}  // namespace crane::node
