// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/paired_trial.h"

#include <algorithm>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

constexpr int kPairs = PairedTrial::kWindows / 2;
constexpr int kPairsAhead = kPairs - 1;  // most of them
constexpr double kClearly = 0.95;        // the winner's cost over the other's, at most

// A window that took longer than this had pauses in it.
constexpr std::int64_t kWindowMaxNs = 2 * PairedTrial::kWindowNs;

constexpr Way A = Way::kFirst, B = Way::kSecond;
constexpr Way kOrder[PairedTrial::kWindows] = {A, B, B, A, A, B, B, A};

}  // namespace

Way PairedTrial::end_window(const Work& work, std::int64_t now_ns, bool may_begin) noexcept {
  const Work before = std::exchange(begin_, work);
  const Window window{now_ns - std::exchange(begin_ns_, now_ns), work.answers - before.answers,
                      work.node_cpu_ns - before.node_cpu_ns};
  window_end_ns_ = now_ns + kWindowNs;
  if (window.ns > kWindowMaxNs || window.answers < kBusyAnswers) {
    confirms_ = false;
    if (std::exchange(done_, -1) >= 0) next_trial_ns_ = now_ns + kAgainMinNs;
    return way_ = settled_;
  }
  if (done_ < 0) {
    if (now_ns < next_trial_ns_ || !may_begin) return way_;
    done_ = 0;
    return way_ = kOrder[0];
  }
  windows_[static_cast<std::size_t>(done_++)] = window;
  return done_ == kWindows ? decide(now_ns) : way_ = kOrder[done_];
}

// By cost(window): the way whose windows cost clearly less in all, and in most pairs.
template <typename Cost>
std::optional<Way> PairedTrial::winner(Cost cost) const noexcept {
  double all[2] = {};
  int ahead[2] = {};
  for (std::size_t i = 0; i < kWindows; i += 2) {
    const double one = cost(windows_[i]), other = cost(windows_[i + 1]);
    const auto first = static_cast<std::size_t>(kOrder[i]), second = 1 - first;
    all[first] += one;
    all[second] += other;
    if (one != other) ++ahead[one < other ? first : second];
  }
  for (const Way way : {A, B}) {
    const auto own = static_cast<std::size_t>(way);
    if (ahead[own] >= kPairsAhead && all[own] < kClearly * all[1 - own]) return way;
  }
  return std::nullopt;
}

Way PairedTrial::decide(std::int64_t now_ns) noexcept {
  CRANE_ASSERT(done_ == kWindows);
  done_ = -1;
  ++trials_;
  const auto per_answer = [](auto what, const Window& w) {
    return static_cast<double>(what) / static_cast<double>(w.answers);
  };
  std::optional<Way> won = winner([&](const Window& w) { return per_answer(w.ns, w); });
  if (!won) won = winner([&](const Window& w) { return per_answer(w.cpu_ns, w); });
  const Way better = won.value_or(settled_);
  const bool confirmed = better != settled_ && std::exchange(confirms_, true);
  if (better == settled_ || confirmed) {
    confirms_ = false;
    again_ns_ = confirmed || trials_ == 1 ? kAgainMinNs : std::min(2 * again_ns_, kAgainMaxNs);
    next_trial_ns_ = now_ns + again_ns_;
  }
  if (confirmed) settled_ = better;  // TRIAL-1
  return way_ = settled_;
}

}  // namespace crane::node
