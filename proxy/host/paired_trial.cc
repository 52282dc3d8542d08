// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/paired_trial.h"

#include <algorithm>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

constexpr int kPairs = PairedTrial::kWindows / 2;
constexpr int kPairsAhead = kPairs - 1;  // pairs that the winner must win
constexpr double kClearly = 0.95;        // maximum ratio of the winner's cost to the other's

// A window that took longer than this contained pauses, so it is not busy.
constexpr std::int64_t kWindowMaxNs = 2 * PairedTrial::kWindowNs;

constexpr std::size_t index(Way way) noexcept { return static_cast<std::size_t>(way); }

constexpr Way A = Way::kFirst, B = Way::kSecond;
constexpr Way kOrder[PairedTrial::kWindows] = {A, B, B, A, A, B, B, A};

}  // namespace

Way PairedTrial::end_window(const Work& work, std::int64_t now_ns, bool may_begin) noexcept {
  const Work before = std::exchange(begin_, work);
  const Window window{now_ns - std::exchange(begin_ns_, now_ns), work.answers - before.answers,
                      work.node_cpu_ns - before.node_cpu_ns};
  window_end_ns_ = now_ns + kWindowNs;
  const bool busy = window.ns <= kWindowMaxNs && window.answers >= kBusyAnswers;
  answers_ = busy ? window.answers : 0;
  if (!busy) {
    confirms_ = false;
    busy_ = 0;
    if (std::exchange(done_, -1) >= 0) next_trial_ns_ = now_ns + kAgainMinNs;
    return way_ = settled_;
  }
  busy_ = std::min(busy_ + 1, kBusyBefore);
  if (done_ < 0) {
    if (now_ns < next_trial_ns_ || !may_begin || busy_ < kBusyBefore) return way_;  // TRIAL-3
    done_ = 0;
    return way_ = kOrder[0];
  }
  windows_[static_cast<std::size_t>(done_++)] = window;
  if (done_ == kWindows) return end_trial(better_way(), now_ns);
  if (done_ % 2 == 0 && is_much_worse()) return end_trial(settled_, now_ns);
  return way_ = kOrder[done_];
}

void PairedTrial::guess(Way way) noexcept {
  if (!found_ && !confirms_ && !trying()) way_ = settled_ = way;
}

double PairedTrial::time_of(const Window& w) noexcept {
  return static_cast<double>(w.ns) / static_cast<double>(w.answers);
}

double PairedTrial::cpu_of(const Window& w) noexcept {
  return static_cast<double>(w.cpu_ns) / static_cast<double>(w.answers);
}

PairedTrial::Score PairedTrial::score(double (*cost)(const Window&)) const noexcept {
  CRANE_ASSERT(done_ % 2 == 0);
  Score score;
  for (std::size_t i = 0; i < static_cast<std::size_t>(done_); i += 2) {
    const double one = cost(windows_[i]), other = cost(windows_[i + 1]);
    const std::size_t first = index(kOrder[i]), second = 1 - first;
    score.cost[first] += one;
    score.cost[second] += other;
    if (one != other) ++score.ahead[one < other ? first : second];
  }
  return score;
}

// Whether the tried way has lost every pair so far by a wide margin.
bool PairedTrial::is_much_worse() const noexcept {
  const Score times = score(time_of);
  const std::size_t own = index(settled_);
  return times.ahead[own] == done_ / 2 && times.cost[1 - own] > kMuchWorse * times.cost[own];
}

// The way whose windows cost clearly less in total and in most pairs; otherwise the settled one.
Way PairedTrial::better_way() const noexcept {
  CRANE_ASSERT(done_ == kWindows);  // TRIAL-1
  for (const auto cost : {time_of, cpu_of}) {
    const Score costs = score(cost);
    for (const Way way : {A, B}) {
      const std::size_t own = index(way);
      const bool clearly = costs.cost[own] < kClearly * costs.cost[1 - own];
      if (clearly && costs.ahead[own] >= kPairsAhead) return way;
    }
  }
  return settled_;
}

Way PairedTrial::end_trial(Way better, std::int64_t now_ns) noexcept {
  done_ = -1;
  ++trials_;
  const bool confirmed = better != settled_ && std::exchange(confirms_, true);
  if (better == settled_ || confirmed) {
    confirms_ = false;
    again_ns_ = confirmed || trials_ == 1 ? kAgainMinNs : std::min(2 * again_ns_, kAgainMaxNs);
    next_trial_ns_ = now_ns + again_ns_;
  }
  if (confirmed) {  // TRIAL-1
    settled_ = better;
    found_ = true;
  }
  return way_ = settled_;
}

}  // namespace crane::node
