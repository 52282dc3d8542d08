// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica that recovers runs what it missed, and another replica may take a newer checkpoint
// meanwhile.  Where the server would run for longer until it came to that checkpoint's entry than
// a restart there takes, the replica restarts there: under load it might run behind for ever.
//
// Threads: a plain value.
// INVARIANT OVERTAKE-1  A replica restarts at a newer checkpoint only while the others are a
//                       majority without it, before it has caught up once, and at most once for
//                       each checkpoint that it hears of.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "dmt/base/ids.h"

namespace crane::replica {

class Overtaking {
 public:
  // A restart costs at least so much; twice what the last one took, as this machine may be busier.
  static constexpr std::int64_t kLeastCostNs = 2'000'000'000;
  static constexpr std::int64_t kCostTimes = 2;
  static constexpr std::int64_t kMeasureNs = 1'000'000'000;  // before its rate is known

  // The server runs and is at `at`; bringing it back took `took_ns`, 0: it was not brought back.
  void begin(Index at, std::int64_t took_ns, std::int64_t now_ns) noexcept {
    active_ = true;
    from_ = before_ = at;
    from_ns_ = before_ns_ = now_ns;
    cost_ns_ = std::max(kLeastCostNs, kCostTimes * took_ns);
  }
  bool active() const noexcept { return active_; }
  // Another replica has published a checkpoint at that entry.
  void heard(Index at) noexcept { newest_ = std::max(newest_, at); }

  struct Inputs {
    Index applied{};         // the server has come so far,
    bool caught_up = false;  // with all that the group has
    bool spared = false;     // the others are a majority without this replica
    std::int64_t now_ns = 0;
  };
  // A checkpoint at that entry or behind it is worth a restart; nullopt: none is that was heard of.
  std::optional<Index> step(const Inputs& seen) noexcept {
    if (seen.caught_up) active_ = false;
    if (!active_) return std::nullopt;
    if (seen.now_ns - before_ns_ >= 2 * kMeasureNs) {  // the rate of the last seconds
      from_ = before_;
      from_ns_ = before_ns_;
      before_ = seen.applied;
      before_ns_ = seen.now_ns;
    }
    const std::int64_t ran_ns = seen.now_ns - from_ns_;
    if (!seen.spared || newest_ <= seen.applied || ran_ns < kMeasureNs) return std::nullopt;
    const double rate =
        static_cast<double>(value(seen.applied) - value(from_)) / static_cast<double>(ran_ns);
    const double meanwhile = rate * static_cast<double>(cost_ns_);
    const Index least{value(seen.applied) + static_cast<std::uint64_t>(meanwhile) + 1};
    return newest_ >= least ? std::optional(least) : std::nullopt;
  }

 private:
  bool active_ = false;
  Index newest_{};           // that was heard of
  Index from_{}, before_{};  // where the server was then, and at the last look
  std::int64_t from_ns_ = 0, before_ns_ = 0;
  std::int64_t cost_ns_ = kLeastCostNs;
};

}  // namespace crane::replica
