// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trial under load that decides which of two ways to run a node serves more, because no rule
// predicts it (DESIGN D10).  Examples are whether the node shares its server's core, and whether it
// polls before it sleeps.  The answer depends on the server, its clients, and the machine's other
// load.
//
// A trial runs while the server answers.  It has kWindows windows, in an order in which a rising or
// falling load favours neither way.  The way with more answers per second wins; if both give the
// same, the way that needs less processor time of the node per answer wins.  An unclear result
// changes nothing.  Trials become rarer while they find nothing new.  A short load gains nothing
// from a trial and must not pay for one (TRIAL-3): it runs in the way that the caller guesses.
//
// Shapes: pure; times are CLOCK_MONOTONIC in ns.  Threads: one.
// INVARIANT TRIAL-1  The way changes permanently only after two complete successive trials.  All
//                    windows of both were busy.  In both, the same way was clearly ahead in total
//                    and ahead in most pairs of windows.
//                    Until then, the caller's guess counts.
// INVARIANT TRIAL-3  A trial begins only after kBusyBefore busy windows in a row.  If the tried way
//                    has lost every pair of windows so far, and has taken more than kMuchWorse
//                    times as long per answer, the trial ends with that pair.

#include <array>
#include <cstdint>

namespace crane::node {

enum class Way : std::uint8_t { kFirst, kSecond };  // kFirst: the initial way

class PairedTrial {
 public:
  // Short, because half of a trial is spent in the worse way.
  static constexpr std::int64_t kWindowNs = 25'000'000;
  static constexpr int kWindows = 8;
  // Fewer answers per window do not count as busy.
  static constexpr std::uint64_t kBusyAnswers = 10;
  static constexpr int kBusyBefore = 8;
  static constexpr double kMuchWorse = 1.5;
  static constexpr std::int64_t kAgainMinNs = 5'000'000'000;
  static constexpr std::int64_t kAgainMaxNs = 80'000'000'000;

  struct Work {             // totals since the node's start
    std::uint64_t answers;  // records that the server wrote to its clients
    std::int64_t node_cpu_ns;
  };

  // Whether the window is over, so that step() needs current work totals.
  bool due(std::int64_t now_ns) const noexcept { return now_ns >= window_end_ns_; }
  // Returns the way to use from now on.  Call at every turn of the event loop.  `may_begin`: a
  // trial may begin.
  Way step(const Work& work, std::int64_t now_ns, bool may_begin = true) noexcept {
    return due(now_ns) ? end_window(work, now_ns, may_begin) : way_;
  }
  Way way() const noexcept { return way_; }
  // Sets the way to use, and to compare the other way with, until a trial has changed it (TRIAL-1).
  // Does nothing during a trial.
  void guess(Way way) noexcept;
  // The result of the last trial, or else the guess.
  Way settled() const noexcept { return settled_; }
  bool trying() const noexcept { return done_ >= 0; }
  // Answers in the last window; 0: it was not busy.
  std::uint64_t answers() const noexcept { return answers_; }
  // The number of trials that were not ended by a pause.
  std::uint64_t trials() const noexcept { return trials_; }

 private:
  struct Window {
    std::int64_t ns = 0;
    std::uint64_t answers = 0;
    std::int64_t cpu_ns = 0;
  };
  struct Score {  // of each way, over the pairs so far
    double cost[2] = {};
    int ahead[2] = {};  // pairs that it won by lower cost
  };
  // Cost per answer.
  static double time_of(const Window& w) noexcept;
  static double cpu_of(const Window& w) noexcept;
  Score score(double (*cost)(const Window&)) const noexcept;
  bool is_much_worse() const noexcept;
  Way better_way() const noexcept;
  Way end_window(const Work& work, std::int64_t now_ns, bool may_begin) noexcept;
  Way end_trial(Way better, std::int64_t now_ns) noexcept;

  Way settled_ = Way::kFirst;
  Way way_ = Way::kFirst;
  Work begin_{};  // at the start of the window
  std::int64_t begin_ns_ = 0;
  std::int64_t window_end_ns_ = 0;
  std::int64_t next_trial_ns_ = 0;
  std::int64_t again_ns_ = kAgainMinNs;
  std::array<Window, kWindows> windows_{};
  int done_ = -1;          // windows done in this trial; -1: no trial
  int busy_ = 0;           // busy windows in a row, at most kBusyBefore
  bool confirms_ = false;  // the last trial favoured a change; the next one decides
  bool found_ = false;     // a trial has changed the way
  std::uint64_t answers_ = 0;
  std::uint64_t trials_ = 0;
};

}  // namespace crane::node
