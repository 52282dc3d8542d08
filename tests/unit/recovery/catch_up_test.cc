// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica that recovers seeks the lead when its server is there, or after the limit.
// METHOD  The test's clock, log and leader.
// CHECKS  CATCHUP-1; a group that died as a whole; a replica that is alone.
#include "proxy/node/recovery/catch_up.h"

#include <catch2/catch.hpp>

using namespace crane;
using namespace crane::node;
using Outcome = CatchUp::Outcome;

namespace {
constexpr std::int64_t kNow = 1'000'000'000'000;

CatchUp::Seen follower(std::uint64_t applied, std::uint64_t committed) {
  CatchUp::Seen seen;
  seen.follows = true;
  seen.applied = Index{applied};
  seen.committed = Index{committed};
  return seen;
}
}  // namespace

TEST_CASE("a follower has caught up when its server ran what is committed",
          "[catch-up][CATCHUP-1]") {
  CatchUp c;
  c.begin(Index{50}, true, kNow);
  CHECK(c.active());
  CHECK(c.step(follower(10, 90), kNow + 1) == Outcome::kNothing);
  CHECK(c.step(follower(89, 90), kNow + 2) == Outcome::kNothing);
  CHECK(c.step(follower(90, 90), kNow + 3) == Outcome::kCaughtUp);
  CHECK_FALSE(c.active());
  CHECK(c.step(follower(90, 95), kNow + 4) == Outcome::kNothing);
  CHECK(c.missed() == Index{50});
}

TEST_CASE("without a leader it waits until one would have been heard", "[catch-up]") {
  CatchUp c;
  c.begin(Index{5}, true, kNow);
  CatchUp::Seen alone = follower(5, 5);
  alone.follows = false;
  CHECK(c.step(alone, kNow + CatchUp::kHearNs - 1) == Outcome::kNothing);
  CHECK(c.step(alone, kNow + CatchUp::kHearNs) == Outcome::kCaughtUp);
}

TEST_CASE("a server that stays behind seeks the lead at the limit", "[catch-up][CATCHUP-1]") {
  CatchUp c;
  c.begin(Index{5}, true, kNow);
  CHECK(c.step(follower(5, 900), kNow + CatchUp::kLimitNs - 1) == Outcome::kNothing);
  CHECK(c.step(follower(6, 990), kNow + CatchUp::kLimitNs) == Outcome::kStillBehind);
  CHECK_FALSE(c.active());
}

TEST_CASE("a replica that is alone has no lead to leave to another one", "[catch-up]") {
  CatchUp c;
  c.begin(Index{5}, false, kNow);
  CHECK_FALSE(c.active());
  CHECK(c.missed() == Index{5});
}
