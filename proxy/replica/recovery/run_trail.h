// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long the server took to run the log, by place.  A replica that begins at a checkpoint must
// run again what the server has run after that place.
//
// Threads: a plain value.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace crane::replica {

class RunTrail {
 public:
  // When the log ended at `pos`, bytes, the server had run for `run_ns` since it started.
  // REQUIRES: neither argument is less than before.
  void at(std::uint64_t pos, std::int64_t run_ns) noexcept {
    run_ns_ = run_ns;
    if (used_ != 0 && run_ns < steps_[used_ - 1].run_ns + step_ns_) return;
    if (used_ == kSteps) {  // half the resolution from now on
      for (std::size_t i = 0; i < kSteps / 2; ++i) steps_[i] = steps_[2 * i];
      used_ = kSteps / 2;
      step_ns_ *= 2;
    }
    steps_[used_++] = {pos, run_ns};
  }
  // A lower bound of the server's run time after `pos`; for a place before the first one, its total
  // run time.
  std::int64_t since(std::uint64_t pos) const noexcept {
    const auto end = steps_.begin() + static_cast<std::ptrdiff_t>(used_);
    const auto later = std::partition_point(steps_.begin(), end,
                                            [pos](const Step& step) { return step.pos <= pos; });
    return later == steps_.begin() ? run_ns_ : run_ns_ - std::prev(later)->run_ns;
  }

 private:
  static constexpr std::size_t kSteps = 128;
  struct Step {
    std::uint64_t pos = 0;
    std::int64_t run_ns = 0;
  };
  std::array<Step, kSteps> steps_{};  // ascending
  std::size_t used_ = 0;
  std::int64_t step_ns_ = 100'000'000;  // between two steps
  std::int64_t run_ns_ = 0;             // the last argument of at()
};

}  // namespace crane::replica
