// SPDX-License-Identifier: Apache-2.0
#pragma once
// The last minutes of a node, for the page: one sample per period, oldest first.
//
// Pure.  Threads: one object, one thread.

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>

#include "dmt/base/latency_histogram.h"
#include "proxy/host/status.h"

namespace crane::node {

class History {
 public:
  static constexpr std::int64_t kPeriodNs = 2'000'000'000;
  static constexpr std::size_t kSamples = 300;  // ten minutes

  // `unix_ms`: the wall clock's time.
  void add(const NodeStatus& status, std::int64_t unix_ms);

  // Columns of equal length: rates per second since the previous sample, and values at its time.
  nlohmann::json columns() const;

 private:
  struct Sample {
    std::int64_t unix_ms = 0;
    double inputs_per_s = 0, received_per_s = 0, sent_per_s = 0;
    std::int64_t p50_us = -1, p99_us = -1;  // -1: nothing was proposed
    std::uint64_t connections = 0;
    std::int64_t lag_ms = 0;
    bool leads = false;
  };
  // The totals at the previous sample.
  struct Before {
    std::uint64_t at_ns = 0;
    std::uint64_t inputs = 0, received = 0, sent = 0;
    LatencyHistogram commit_times;
  };

  std::deque<Sample> samples_;
  Before before_;
};

}  // namespace crane::node
