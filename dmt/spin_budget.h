// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides from recent waits whether to spin before sleeping (DESIGN D10).  Spinning for as long as
// a wake-up takes never costs more than twice the better choice, and pays if most waits are that
// short.  If they are longer, or if the other party needs this core, only an occasional wait spins,
// because the server's behaviour may change.
//
// Units: iterations of the caller's loop.  Threads: each has its own.
// INVARIANT SPIN-1  While most waits are longer than the longest spin, one in kTryEvery spins.

#include <algorithm>
#include <cstdint>

namespace crane::dmt {

class SpinBudget {
 public:
  static constexpr std::uint32_t kTryEvery = 64;

  // Iterations for the wait that begins now: `most` or none.
  std::uint32_t next(std::uint32_t most) noexcept {
    return credit_ > 0 || ++waits_ % kTryEvery == 0 ? most : 0;
  }
  // The awaited event came in time, or did not.
  void helped() noexcept { credit_ = std::min(credit_ + 1, kCreditMost); }
  void failed() noexcept { credit_ = std::max(credit_ - 2, 0); }

 private:
  static constexpr int kCreditMost = 16;

  std::uint32_t waits_ = 0;
  int credit_ = 0;
};

}  // namespace crane::dmt
