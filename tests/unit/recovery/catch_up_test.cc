// SPDX-License-Identifier: Apache-2.0
// GOAL    A recovering replica knows when its server has run what it missed.
// METHOD  The test's clock, log and leader.
// CHECKS  CATCHUP-1; what the replica's log does not contain yet; a group that died as a whole; a
//         replica without others.
#include "proxy/replica/recovery/catch_up.h"

#include <catch2/catch.hpp>

using namespace crane;
using namespace crane::replica;

namespace {
constexpr std::int64_t kNow = 1'000'000'000'000;

CatchUp::Inputs follower(std::uint64_t applied, std::uint64_t committed) {
  CatchUp::Inputs seen;
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
  c.on_report(*message);
}
}  // namespace

TEST_CASE("a follower has caught up when its server has run what is committed",
          "[catch-up][CATCHUP-1]") {
  CatchUp c;
  c.begin(Index{50}, kNow);
  CHECK(c.active());
  answer(c, 60);
  CHECK_FALSE(c.step(follower(10, 90), kNow + 1));
  CHECK_FALSE(c.step(follower(89, 90), kNow + 2));
  CHECK(c.step(follower(90, 90), kNow + 3));
  CHECK_FALSE(c.active());
  CHECK_FALSE(c.step(follower(90, 95), kNow + 4));
  CHECK(c.missed() == Index{50});
}

TEST_CASE("what the leader has committed counts before this replica's log has it",
          "[catch-up][CATCHUP-1]") {
  CatchUp c;
  c.begin(Index{50}, kNow);
  // The log begins at the checkpoint: nothing is missing in it.
  CHECK_FALSE(c.step(follower(50, 50), kNow + 1));
  CHECK_FALSE(c.step(follower(50, 50), kNow + 20 * CatchUp::kPeerWaitNs));
  answer(c, 90);
  CHECK_FALSE(c.step(follower(50, 50), kNow + 2));
  CHECK_FALSE(c.step(follower(89, 89), kNow + 3));
  CHECK(c.step(follower(90, 90), kNow + 4));
}

TEST_CASE("a known leader is asked until it has answered", "[catch-up]") {
  CatchUp c;
  CHECK_FALSE(c.question(true, kNow));
  c.begin(Index{5}, kNow);
  CHECK_FALSE(c.question(false, kNow));
  const auto first = c.question(true, kNow);
  REQUIRE(first);
  CHECK(first->answers == 0);
  CHECK_FALSE(c.question(true, kNow + CatchUp::kAskNs - 1));
  CHECK(c.question(true, kNow + CatchUp::kAskNs));
  CommittedMessage late = *first;
  late.answers = 1;
  late.life -= 1;  // of the previous process
  c.on_report(late);
  CHECK_FALSE(c.step(follower(5, 5), kNow + 1));
  CHECK(c.question(true, kNow + 2 * CatchUp::kAskNs));
  late.life = first->life;
  c.on_report(late);
  CHECK_FALSE(c.question(true, kNow + 3 * CatchUp::kAskNs));
  CHECK(c.step(follower(5, 5), kNow + 2));
}

TEST_CASE("without a leader it waits until one would have been known", "[catch-up]") {
  CatchUp c;
  c.begin(Index{5}, kNow);
  CatchUp::Inputs alone = follower(5, 5);
  alone.follows = false;
  CHECK_FALSE(c.step(alone, kNow + CatchUp::kPeerWaitNs - 1));
  CHECK(c.step(alone, kNow + CatchUp::kPeerWaitNs));
}

TEST_CASE("what is committed later does not move the goal, while the server is near",
          "[catch-up][CATCHUP-1]") {
  CatchUp c;
  c.begin(Index{5}, kNow);
  answer(c, 900);
  CHECK_FALSE(c.step(follower(899, 950), kNow + 1));
  CatchUp::Inputs late = follower(950, 1200);
  late.behind_ns = CatchUp::kNearNs + 1;
  CHECK_FALSE(c.step(late, kNow + 2));
  late.behind_ns = CatchUp::kNearNs;
  CHECK(c.step(late, kNow + 3));
}

TEST_CASE("a leader has caught up with what was committed when its reign began",
          "[catch-up][CATCHUP-1]") {
  CatchUp c;
  c.begin(Index{5}, kNow);
  CatchUp::Inputs leads = follower(5, 90);
  leads.follows = false;
  leads.leads = true;
  CHECK_FALSE(c.step(leads, kNow + 1));
  leads.applied = Index{90};
  leads.committed = Index{100};
  CHECK(c.step(leads, kNow + 2));
}
