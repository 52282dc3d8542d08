// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether to spin for a while before sleeping (DESIGN D10), as it has turned out of late: spinning
// for as long as a wake-up takes never costs more than twice the better choice, and is worth it
// when most waits are that short.  Where they are not, or where the other party needs this core, it
// is not done, but for a try now and then, because what the server does may change.
//
// Shapes: iterations of the caller's loop.  Threads: each has its own.
// INVARIANT SPIN-1  While most waits are longer than the most that is spun, one in kTryEvery spins.

#include <algorithm>
#include <cstdint>

namespace crane::dmt {

class SpinBudget {
 public:
  static constexpr std::uint32_t kTryEvery = 64;

  // Iterations of the wait that begins now, which are `most` or none.
  std::uint32_t next(std::uint32_t most) noexcept {
    return credit_ > 0 || ++waits_ % kTryEvery == 0 ? most : 0;
  }
  // What was waited for came in time, or did not.
  void helped() noexcept { credit_ = std::min(credit_ + 1, kCreditMost); }
  void failed() noexcept { credit_ = std::max(credit_ - 2, 0); }

 private:
  static constexpr int kCreditMost = 16;

  std::uint32_t waits_ = 0;
  int credit_ = 0;
};

}  // namespace crane::dmt
