// SPDX-License-Identifier: Apache-2.0
#pragma once
// The progress of a recovering replica: the entries that its server has run since the node began,
// those left to run, the rate, and the time left.
//
// The time left follows from how fast the rest shrinks, not from how fast entries are run, because
// the group adds entries meanwhile.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "runtime/control/verdict.h"

namespace crane::replica {

class RunMeter {
 public:
  // The node began at entry `at`, and has more to run.
  void recovers(Index at) noexcept { *this = {}, begun_ = at, recovering_ = true; }
  bool recovering() const noexcept { return recovering_; }

  // The server has reached `applied`, and the group `target`.  `done`: nothing that was missed is
  // left.
  void step(Index applied, Index target, bool done, std::int64_t now_ns) noexcept {
    if (!recovering_) return;
    recovering_ = !done;
    applied_ = std::max(applied, begun_);
    target_ = std::max({target, target_, applied_});
    if (used_ != 0 && now_ns - samples_[(used_ - 1) % kSamples].at_ns < kEveryNs) return;
    samples_[used_++ % kSamples] = {value(applied_), value(target_) - value(applied_), now_ns};
  }

  control::Progress progress() const noexcept {
    control::Progress p;
    p.done = value(applied_) - value(begun_);
    p.of = value(target_) - value(begun_);
    if (used_ < 2) return p;
    const Sample& now = samples_[(used_ - 1) % kSamples];
    const Sample& then = samples_[used_ <= kSamples ? 0 : used_ % kSamples];
    const double seconds = static_cast<double>(now.at_ns - then.at_ns) / 1e9;
    p.per_s = static_cast<std::uint64_t>(static_cast<double>(now.applied - then.applied) / seconds);
    const std::uint64_t rest = value(target_) - value(applied_);
    if (rest == 0) p.left_ms = 0;
    if (then.rest <= now.rest || rest == 0) return p;
    const double shrinks = static_cast<double>(then.rest - now.rest) / seconds;
    p.left_ms = static_cast<std::int64_t>(static_cast<double>(rest) * 1000 / shrinks);
    return p;
  }

  static constexpr std::int64_t kEveryNs = 250'000'000;
  static constexpr std::size_t kSamples = 9;  // the last two seconds

 private:
  struct Sample {
    std::uint64_t applied = 0, rest = 0;
    std::int64_t at_ns = 0;
  };
  bool recovering_ = false;
  Index begun_{}, applied_{}, target_{};
  std::array<Sample, kSamples> samples_{};
  std::size_t used_ = 0;  // samples ever taken
};

}  // namespace crane::replica
