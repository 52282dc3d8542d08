// SPDX-License-Identifier: Apache-2.0
#pragma once
// The progress of a recovering replica: the entries that its server has run since the node began,
// those left to run, the rate, and the time left.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.

#include <algorithm>
#include <cstdint>

#include "dmt/base/ids.h"
#include "runtime/control/progress.h"

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
    meter_.step(value(applied_) - value(begun_), value(target_) - value(begun_), now_ns);
  }

  control::Progress progress() const noexcept { return meter_.progress(); }

 private:
  bool recovering_ = false;
  Index begun_{}, applied_{}, target_{};
  control::ProgressMeter meter_;
};

}  // namespace crane::replica
