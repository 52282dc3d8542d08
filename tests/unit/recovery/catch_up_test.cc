// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica that recovers seeks the lead when its server is there, or after the limit.
// METHOD  The test's clock, log and leader.
// CHECKS  CATCHUP-1; what the own log does not have yet; a group that died as a whole; a replica
//         that is alone.
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

// The leader has answered.
void answer(CatchUp& c, std::uint64_t committed) {
  auto message = c.question(true, kNow);
  REQUIRE(message);
  message->answers = 1;
  message->committed = committed;
  c.heard(*message);
}
}  // namespace

TEST_CASE("a follower has caught up when its server ran what is committed",
          "[catch-up][CATCHUP-1]") {
  CatchUp c;
  c.begin(Index{50}, true, kNow);
  CHECK(c.active());
  answer(c, 60);
  CHECK(c.step(follower(10, 90), kNow + 1) == Outcome::kNothing);
  CHECK(c.step(follower(89, 90), kNow + 2) == Outcome::kNothing);
  CHECK(c.step(follower(90, 90), kNow + 3) == Outcome::kCaughtUp);
  CHECK_FALSE(c.active());
  CHECK(c.step(follower(90, 95), kNow + 4) == Outcome::kNothing);
  CHECK(c.missed() == Index{50});
}

TEST_CASE("what the leader has committed counts before the own log has it",
          "[catch-up][CATCHUP-1]") {
  CatchUp c;
  c.begin(Index{50}, true, kNow);
  // A log that begins at the checkpoint: nothing in it is missing.
  CHECK(c.step(follower(50, 50), kNow + 1) == Outcome::kNothing);
  CHECK(c.step(follower(50, 50), kNow + CatchUp::kLimitNs - 1) == Outcome::kNothing);
  answer(c, 90);
  CHECK(c.step(follower(50, 50), kNow + 2) == Outcome::kNothing);
  CHECK(c.step(follower(89, 89), kNow + 3) == Outcome::kNothing);
  CHECK(c.step(follower(90, 90), kNow + 4) == Outcome::kCaughtUp);
}

TEST_CASE("a leader that is known is asked until it has answered", "[catch-up]") {
  CatchUp c;
  CHECK_FALSE(c.question(true, kNow));
  c.begin(Index{5}, true, kNow);
  CHECK_FALSE(c.question(false, kNow));
  const auto first = c.question(true, kNow);
  REQUIRE(first);
  CHECK(first->answers == 0);
  CHECK_FALSE(c.question(true, kNow + CatchUp::kAskNs - 1));
  CHECK(c.question(true, kNow + CatchUp::kAskNs));
  CommittedMessage late = *first;
  late.answers = 1;
  late.life -= 1;  // of the process before
  c.heard(late);
  CHECK(c.step(follower(5, 5), kNow + 1) == Outcome::kNothing);
  CHECK(c.question(true, kNow + 2 * CatchUp::kAskNs));
  late.life = first->life;
  c.heard(late);
  CHECK_FALSE(c.question(true, kNow + 3 * CatchUp::kAskNs));
  CHECK(c.step(follower(5, 5), kNow + 2) == Outcome::kCaughtUp);
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
