// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long the server took to run the log, by place: what a replica that begins at a checkpoint
// has to run again is what the server has run behind that place.
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
  // REQUIRES: neither is less than before.
  void at(std::uint64_t pos, std::int64_t run_ns) noexcept {
    run_ns_ = run_ns;
    if (used_ != 0 && run_ns < steps_[used_ - 1].run_ns + step_ns_) return;
    if (used_ == kSteps) {  // half as fine from here on
      for (std::size_t i = 0; i < kSteps / 2; ++i) steps_[i] = steps_[2 * i];
      used_ = kSteps / 2;
      step_ns_ *= 2;
    }
    steps_[used_++] = {pos, run_ns};
  }
  // At least what the server has run behind `pos`; behind a place before the first one, all that it
  // has run.
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
  std::int64_t step_ns_ = 100'000'000;  // between two of them
  std::int64_t run_ns_ = 0;             // the last one that was given
};

}  // namespace crane::replica
