// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long a leader's proposals take until they are committed.
//
// Threads: one object, one thread.  Pure.  Times are nanoseconds of CLOCK_MONOTONIC.

#include <array>
#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/base/latency_histogram.h"

namespace crane::replica {

class CommitTimes {
 public:
  void proposed(Index index, std::int64_t now_ns) noexcept { at(index) = {index, now_ns}; }
  // `index` was committed in the reign in which this replica proposed it.  It is not counted if it
  // was overwritten, because more than kKept proposals were in flight.
  void committed(Index index, std::int64_t now_ns) noexcept {
    Proposal& proposal = at(index);
    if (proposal.index != index) return;
    latencies_.add(now_ns - proposal.at_ns);
    proposal = {};
  }
  // Another reign begins: the proposals of the last one are dropped.
  void forget() noexcept { proposals_ = {}; }

  const LatencyHistogram& taken() const noexcept { return latencies_; }

 private:
  struct Proposal {
    Index index{};  // 0: none
    std::int64_t at_ns = 0;
  };
  static constexpr std::size_t kKept = 1024;
  Proposal& at(Index index) noexcept { return proposals_[value(index) % kKept]; }

  std::array<Proposal, kKept> proposals_{};
  LatencyHistogram latencies_;
};

}  // namespace crane::replica
