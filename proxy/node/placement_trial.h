// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a node shares its server's core or roams over all that the replica may use: tried out
// under load, because no rule knows (DESIGN D10).
//
// Where a request is cheap one wake-up serves a batch and the caches are warm on one core; where
// the server works long between turns the node reads and sends meanwhile, elsewhere.  Nor is it a
// property of the server alone: clients on the same machine want its cores, too.
//
// A trial runs while the server answers: kWindows windows, in the order in which a load that grows
// or falls favours neither place.  The place with more answers per second wins, or, where both
// give the same, the one with less of the node's processor time per answer.  What is not clear
// changes nothing.  Trials come less often while they find nothing new.
//
// Shapes: pure; times are CLOCK_MONOTONIC in ns.  Threads: one.
// INVARIANT TRIAL-1  The place changes for good only behind a whole trial, all of whose windows
//                    were busy, and in which the winner was ahead in most pairs of windows.

#include <array>
#include <cstdint>

namespace crane::node {

enum class NodePlace : std::uint8_t { kRoams, kShares };

class PlacementTrial {
 public:
  static constexpr std::int64_t kWindowNs = 100'000'000;
  static constexpr int kWindows = 8;
  // Answers of a window below which nothing is tried.
  static constexpr std::uint64_t kBusyAnswers = 20;
  static constexpr std::int64_t kAgainMinNs = 5'000'000'000;
  static constexpr std::int64_t kAgainMaxNs = 80'000'000'000;

  struct Work {             // totals since the node's start
    std::uint64_t answers;  // records that the server wrote to its clients
    std::int64_t node_cpu_ns;
  };

  // Where the node is to be from here on.  Called at every turn of the event loop.
  NodePlace step(const Work& work, std::int64_t now_ns) noexcept {
    return now_ns < window_end_ns_ ? place_ : end_window(work, now_ns);
  }
  // Whether step() wants to know the work.
  bool due(std::int64_t now_ns) const noexcept { return now_ns >= window_end_ns_; }
  NodePlace place() const noexcept { return place_; }
  // As the last trial left it.
  NodePlace settled() const noexcept { return settled_; }
  // Trials that were carried through.
  std::uint64_t trials() const noexcept { return trials_; }

 private:
  struct Window {
    std::int64_t ns = 0;
    std::uint64_t answers = 0;
    std::int64_t cpu_ns = 0;
  };
  enum class Winner : std::uint8_t { kNone, kRoams, kShares };

  NodePlace end_window(const Work& work, std::int64_t now_ns) noexcept;
  void begin_window(const Work& work, std::int64_t now_ns) noexcept;
  NodePlace decide(std::int64_t now_ns) noexcept;
  template <typename Cost>
  Winner winner(Cost cost) const noexcept;

  NodePlace settled_ = NodePlace::kRoams;
  NodePlace place_ = NodePlace::kRoams;
  Work begin_{};  // of the window
  std::int64_t begin_ns_ = 0;
  std::int64_t window_end_ns_ = 0;
  std::int64_t next_trial_ns_ = 0;
  std::int64_t again_ns_ = kAgainMinNs;
  std::array<Window, kWindows> windows_{};
  int done_ = -1;  // windows of the trial; -1: none is under way
  std::uint64_t trials_ = 0;
};

}  // namespace crane::node
