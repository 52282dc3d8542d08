// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/placement_trial.h"

#include <algorithm>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

constexpr int kPairs = PlacementTrial::kWindows / 2;
constexpr int kPairsAhead = kPairs - 1;  // most of them
constexpr double kClearly = 0.95;        // the winner's cost over the other's, at most

// A window that took longer than this had pauses in it.
constexpr std::int64_t kWindowMaxNs = 2 * PlacementTrial::kWindowNs;

constexpr NodePlace R = NodePlace::kRoams, S = NodePlace::kShares;
constexpr NodePlace kOrder[PlacementTrial::kWindows] = {R, S, S, R, R, S, S, R};

}  // namespace

void PlacementTrial::begin_window(const Work& work, std::int64_t now_ns) noexcept {
  begin_ = work;
  begin_ns_ = now_ns;
  window_end_ns_ = now_ns + kWindowNs;
}

NodePlace PlacementTrial::end_window(const Work& work, std::int64_t now_ns) noexcept {
  const Window window{now_ns - begin_ns_, work.answers - begin_.answers,
                      work.node_cpu_ns - begin_.node_cpu_ns};
  begin_window(work, now_ns);
  if (window.ns > kWindowMaxNs || window.answers < kBusyAnswers) {
    done_ = -1;
    return place_ = settled_;
  }
  if (done_ < 0) {
    if (now_ns < next_trial_ns_) return place_;
    done_ = 0;
    return place_ = kOrder[0];
  }
  windows_[static_cast<std::size_t>(done_++)] = window;
  return done_ == kWindows ? decide(now_ns) : place_ = kOrder[done_];
}

// By cost(window): the place whose windows cost clearly less in all, and in most pairs.
template <typename Cost>
PlacementTrial::Winner PlacementTrial::winner(Cost cost) const noexcept {
  double all[2] = {};
  int ahead[2] = {};
  for (std::size_t i = 0; i < kWindows; i += 2) {
    const double one = cost(windows_[i]), other = cost(windows_[i + 1]);
    const auto first = static_cast<std::size_t>(kOrder[i]), second = 1 - first;
    all[first] += one;
    all[second] += other;
    if (one != other) ++ahead[one < other ? first : second];
  }
  for (const NodePlace place : {R, S}) {
    const auto own = static_cast<std::size_t>(place);
    if (ahead[own] >= kPairsAhead && all[own] < kClearly * all[1 - own]) {
      return place == R ? Winner::kRoams : Winner::kShares;
    }
  }
  return Winner::kNone;
}

NodePlace PlacementTrial::decide(std::int64_t now_ns) noexcept {
  CRANE_ASSERT(done_ == kWindows);  // TRIAL-1
  done_ = -1;
  ++trials_;
  const auto per_answer = [](auto what, const Window& w) {
    return static_cast<double>(what) / static_cast<double>(w.answers);
  };
  Winner won = winner([&](const Window& w) { return per_answer(w.ns, w); });
  if (won == Winner::kNone) won = winner([&](const Window& w) { return per_answer(w.cpu_ns, w); });
  const NodePlace before = settled_;
  if (won != Winner::kNone) settled_ = won == Winner::kRoams ? R : S;
  again_ns_ =
      settled_ == before && trials_ > 1 ? std::min(2 * again_ns_, kAgainMaxNs) : kAgainMinNs;
  next_trial_ns_ = now_ns + again_ns_;
  return place_ = settled_;
}

}  // namespace crane::node
