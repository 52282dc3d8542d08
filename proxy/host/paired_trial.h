// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of two ways to run a node serves more: tried out under load, because no rule knows (DESIGN
// D10).  Whether the node shares its server's core is such a question, and whether it polls before
// it sleeps: the answer depends on the server, on its clients, and on what else the machine does.
//
// A trial runs while the server answers: kWindows windows, in an order in which a load that grows
// or falls favours neither way.  The way with more answers per second wins, or, where both give the
// same, the one with less of the node's processor time per answer.  What is not clear changes
// nothing.  Trials come less often while they find nothing new.  A short load gains nothing from a
// trial, and must not pay for one (TRIAL-3): it goes on in the way that the caller guesses.
//
// Shapes: pure; times are CLOCK_MONOTONIC in ns.  Threads: one.
// INVARIANT TRIAL-1  The way changes for good only behind two whole trials, one after the other.
//                    All windows of both were busy, and in both the same way was clearly ahead in
//                    all and ahead in most pairs of windows.
//                    Until it has, the caller's guess counts.
// INVARIANT TRIAL-3  A trial begins only behind kBusyBefore busy windows in a row.  Where the way
//                    that it tries has lost every pair of windows so far, and has taken more than
//                    kMuchWorse times as long per answer, it ends with that pair.

#include <array>
#include <cstdint>

namespace crane::node {

enum class Way : std::uint8_t { kFirst, kSecond };  // the first: until a trial says otherwise

class PairedTrial {
 public:
  // Short: half of a trial is spent in the worse way.
  static constexpr std::int64_t kWindowNs = 25'000'000;
  static constexpr int kWindows = 8;
  // Answers of a window below which nothing is tried.
  static constexpr std::uint64_t kBusyAnswers = 10;
  static constexpr int kBusyBefore = 8;
  static constexpr double kMuchWorse = 1.5;
  static constexpr std::int64_t kAgainMinNs = 5'000'000'000;
  static constexpr std::int64_t kAgainMaxNs = 80'000'000'000;

  struct Work {             // totals since the node's start
    std::uint64_t answers;  // records that the server wrote to its clients
    std::int64_t node_cpu_ns;
  };

  // Whether step() wants to know the work.
  bool due(std::int64_t now_ns) const noexcept { return now_ns >= window_end_ns_; }
  // In which way to go on.  Called at every turn of the event loop; `may_begin`: a trial.
  Way step(const Work& work, std::int64_t now_ns, bool may_begin = true) noexcept {
    return due(now_ns) ? end_window(work, now_ns, may_begin) : way_;
  }
  Way way() const noexcept { return way_; }
  // The way to go in, and to try the other one against, until a trial has changed it (TRIAL-1).
  // Nothing while a trial is under way.
  void guess(Way way) noexcept;
  // As the last trial, or else the guess, left it.
  Way settled() const noexcept { return settled_; }
  bool trying() const noexcept { return done_ >= 0; }
  // Of the last window; 0: it was not busy.
  std::uint64_t answers() const noexcept { return answers_; }
  // Trials that no pause ended.
  std::uint64_t trials() const noexcept { return trials_; }

 private:
  struct Window {
    std::int64_t ns = 0;
    std::uint64_t answers = 0;
    std::int64_t cpu_ns = 0;
  };
  struct Score {  // of each way, in the pairs so far
    double cost[2] = {};
    int ahead[2] = {};  // pairs in which it cost less
  };
  // Per answer.
  static double time_of(const Window& w) noexcept;
  static double cpu_of(const Window& w) noexcept;
  Score score(double (*cost)(const Window&)) const noexcept;
  bool is_much_worse() const noexcept;
  Way better_way() const noexcept;
  Way end_window(const Work& work, std::int64_t now_ns, bool may_begin) noexcept;
  Way end_trial(Way better, std::int64_t now_ns) noexcept;

  Way settled_ = Way::kFirst;
  Way way_ = Way::kFirst;
  Work begin_{};  // of the window
  std::int64_t begin_ns_ = 0;
  std::int64_t window_end_ns_ = 0;
  std::int64_t next_trial_ns_ = 0;
  std::int64_t again_ns_ = kAgainMinNs;
  std::array<Window, kWindows> windows_{};
  int done_ = -1;          // windows of the trial; -1: none is under way
  int busy_ = 0;           // busy windows in a row, at most kBusyBefore
  bool confirms_ = false;  // the last trial was for a change, and the next one decides
  bool found_ = false;     // a trial has changed the way
  std::uint64_t answers_ = 0;
  std::uint64_t trials_ = 0;
};

}  // namespace crane::node
