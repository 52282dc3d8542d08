// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of two ways to run a node serves more: tried out under load, because no rule knows (DESIGN
// D10).  Whether the node shares its server's core is such a question, and whether it polls before
// it sleeps: the answer depends on the server, on its clients, and on what else the machine does.
//
// A trial runs while the server answers: kWindows windows, in an order in which a load that grows
// or falls favours neither way.  The way with more answers per second wins, or, where both give the
// same, the one with less of the node's processor time per answer.  What is not clear changes
// nothing.  Trials come less often while they find nothing new.
//
// Shapes: pure; times are CLOCK_MONOTONIC in ns.  Threads: one.
// INVARIANT TRIAL-1  The way changes for good only behind two whole trials, one after the other.
//                    All windows of both were busy, and in both the same way was clearly ahead in
//                    all and ahead in most pairs of windows.

#include <array>
#include <cstdint>
#include <optional>

namespace crane::node {

enum class Way : std::uint8_t { kFirst, kSecond };  // the first: until a trial says otherwise

class PairedTrial {
 public:
  // Short: half of a trial is spent in the worse way.
  static constexpr std::int64_t kWindowNs = 25'000'000;
  static constexpr int kWindows = 8;
  // Answers of a window below which nothing is tried.
  static constexpr std::uint64_t kBusyAnswers = 10;
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
  // As the last trial left it.
  Way settled() const noexcept { return settled_; }
  bool trying() const noexcept { return done_ >= 0; }
  // Trials that were carried through.
  std::uint64_t trials() const noexcept { return trials_; }

 private:
  struct Window {
    std::int64_t ns = 0;
    std::uint64_t answers = 0;
    std::int64_t cpu_ns = 0;
  };
  Way end_window(const Work& work, std::int64_t now_ns, bool may_begin) noexcept;
  Way decide(std::int64_t now_ns) noexcept;
  // None: what is not clear.
  template <typename Cost>
  std::optional<Way> winner(Cost cost) const noexcept;

  Way settled_ = Way::kFirst;
  Way way_ = Way::kFirst;
  Work begin_{};  // of the window
  std::int64_t begin_ns_ = 0;
  std::int64_t window_end_ns_ = 0;
  std::int64_t next_trial_ns_ = 0;
  std::int64_t again_ns_ = kAgainMinNs;
  std::array<Window, kWindows> windows_{};
  int done_ = -1;          // windows of the trial; -1: none is under way
  bool confirms_ = false;  // the last trial was for a change, and the next one decides
  std::uint64_t trials_ = 0;
};

}  // namespace crane::node
