// SPDX-License-Identifier: Apache-2.0
// GOAL    A thread spins for the turn as long as that helps, and stops where it does not.
// METHOD  Waits for a turn that comes in time or too late.
// CHECKS  SPIN-1; waits that spun and then slept, and waits that ended without sleeping.
#include "dmt/spin_budget.h"

#include <catch2/catch.hpp>

using crane::dmt::SpinBudget;

namespace {

constexpr std::uint32_t kMost = 2000;
constexpr int kWaits = 64 * 100;

struct Spun {
  int helped = 0, in_vain = 0;  // waits
};

// In each group of `of` waits the first `late` are too long.
Spun spin(SpinBudget& budget, int late, int of) {
  Spun spun;
  for (int i = 0; i < kWaits; ++i) {
    const std::uint32_t may = budget.next(kMost);
    CHECK((may == 0 || may == kMost));
    if (may == 0) continue;
    if (i % of < late) {
      budget.failed();
      ++spun.in_vain;
    } else {
      budget.helped();
      ++spun.helped;
    }
  }
  return spun;
}

}  // namespace

TEST_CASE("spin budget: a turn that comes soon is waited for without sleeping", "[spin]") {
  SpinBudget budget;
  // All except the waits before the first try.
  CHECK(spin(budget, 0, 1).helped > kWaits - static_cast<int>(SpinBudget::kTryEvery));
}

TEST_CASE("spin budget: a turn that comes late is waited for asleep", "[spin][SPIN-1]") {
  SpinBudget budget;
  const Spun spun = spin(budget, 1, 1);
  CHECK(spun.helped == 0);
  CHECK(spun.in_vain == kWaits / static_cast<int>(SpinBudget::kTryEvery));
}

TEST_CASE("spin budget: one late turn does not stop spinning", "[spin]") {
  SpinBudget budget;
  CHECK(spin(budget, 1, 10).helped > kWaits * 8 / 10);
  // Each late turn causes a second one, because a thread that was woken is late, too.
  CHECK(spin(budget, 2, 10).helped > kWaits * 7 / 10);
}

TEST_CASE("spin budget: threads do not spin if most turns come late", "[spin]") {
  SpinBudget budget;
  CHECK(spin(budget, 9, 10).in_vain < kWaits / 10);
}

TEST_CASE("spin budget: it adapts when the server's behaviour changes", "[spin]") {
  SpinBudget budget;
  spin(budget, 0, 1);
  CHECK(spin(budget, 1, 1).in_vain <= kWaits / static_cast<int>(SpinBudget::kTryEvery) + 8);
  CHECK(spin(budget, 0, 1).helped > kWaits - static_cast<int>(SpinBudget::kTryEvery));
}
