// SPDX-License-Identifier: Apache-2.0
#pragma once
// While a recovering replica runs what it missed, another replica may take a newer checkpoint.  If
// the server would take longer to reach that checkpoint's entry than a restart at it, the replica
// restarts there.  Otherwise it might stay behind forever under load.
//
// Threads: a plain value.
// INVARIANT OVERTAKE-1  A replica restarts at a newer checkpoint only while the others are a
//                       majority without it, before it has caught up, and at most once for each
//                       reported checkpoint.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "dmt/base/ids.h"

namespace crane::replica {

class Overtaking {
 public:
  // The least cost of a restart; it is twice the last one if that is more, as this machine may be
  // busier.
  static constexpr std::int64_t kLeastCostNs = 2'000'000'000;
  static constexpr std::int64_t kCostTimes = 2;
  static constexpr std::int64_t kMeasureNs = 1'000'000'000;  // time needed to measure its rate

  // The server runs and is at `at`; restoring it took `took_ns`, 0: it was not restored.
  void begin(Index at, std::int64_t took_ns, std::int64_t now_ns) noexcept {
    active_ = true;
    from_ = before_ = at;
    from_ns_ = before_ns_ = now_ns;
    cost_ns_ = std::max(kLeastCostNs, kCostTimes * took_ns);
  }
  bool active() const noexcept { return active_; }
  // Another replica has published a checkpoint at that entry.
  void on_report(Index at) noexcept { newest_ = std::max(newest_, at); }

  struct Inputs {
    Index applied{};         // the last entry that the server has admitted
    bool caught_up = false;  // it has run everything that the group has
    bool spared = false;     // the others are a majority without this replica
    std::int64_t now_ns = 0;
  };
  // Returns an entry; a checkpoint at or after it is worth a restart.  nullopt: none of the
  // reported ones is.
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
  Index newest_{};           // the newest reported checkpoint
  Index from_{}, before_{};  // the server's place at from_ns_ and before_ns_
  std::int64_t from_ns_ = 0, before_ns_ = 0;
  std::int64_t cost_ns_ = kLeastCostNs;
};

}  // namespace crane::replica
