// SPDX-License-Identifier: Apache-2.0
// GOAL    The leader proposes BUBBLE and TIME when its server needs them, and a node that is about
//         to sleep notices what changed since it looked.
// METHOD  The test is the server's scheduler.
// CHECKS  OWN-1; news; the deadline that is passed to the server.
#include "proxy/replica/role/grant_proposer.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace crane;
using namespace crane::replica;

namespace {

struct World {
  std::vector<Propose> proposed;
  GrantProposer grants{{}};
  TurnsNeeded server;

  void step(std::uint64_t applied, std::uint64_t last, std::int64_t now = 0) {
    const Decision decision = grants.step({Index{applied}, Index{last}, now}, server);
    if (decision.what != Propose::kNothing) proposed.push_back(decision.what);
  }
  bool has_news(std::uint64_t applied, std::uint64_t last) const {
    return grants.has_news(Index{applied}, Index{last}, server);
  }
};

}  // namespace

TEST_CASE_METHOD(World, "a server that wants turns gets a BUBBLE", "[grants]") {
  server.stalled = true;
  step(5, 5);
  CHECK(proposed == std::vector{Propose::kBubble});
}

TEST_CASE_METHOD(World, "nothing is proposed while an entry waits for its admission",
                 "[grants][OWN-1]") {
  server.next_deadline_ns = 10;
  step(4, 5, 1'000'000'000);
  CHECK(proposed.empty());
}

TEST_CASE_METHOD(World, "a deadline that has passed is proposed as TIME", "[grants]") {
  server.next_deadline_ns = 10;
  step(5, 5, 1'000'000'000);
  CHECK(proposed == std::vector{Propose::kTime});
}

TEST_CASE_METHOD(World, "a deadline in the future sets the timer", "[grants]") {
  server.next_deadline_ns = 7'000'000'000;
  step(5, 5, 1'000'000'000);
  CHECK(proposed.empty());
  CHECK(grants.due_ns() >= 7'000'000'000);
  CHECK(grants.timer_ns() == 7'000'000'000);
  grants.pause();
  CHECK(grants.due_ns() == kNever);
}

TEST_CASE_METHOD(World, "what the server did since the last step is news", "[grants]") {
  step(5, 5);
  CHECK_FALSE(has_news(5, 5));
  CHECK(has_news(6, 5));
  server.stalled = true;
  CHECK(has_news(5, 5));
  server.stalled = false;
  server.low = true;
  CHECK(has_news(5, 5));
  server.low = false;
  server.next_deadline_ns = 3;  // earlier than the timer
  CHECK(has_news(5, 5));
  CHECK_FALSE(has_news(5, 6));
}

TEST_CASE_METHOD(World, "threads at a soft barrier are released when nothing else runs",
                 "[grants]") {
  server.at_soft_barrier = true;
  server.next_deadline_ns = 10;
  CHECK(has_news(5, 5));
  server.stalled = true;  // it needs turns first
  step(5, 5, 1);
  CHECK(proposed == std::vector{Propose::kBubble});
  server.stalled = false;
  step(5, 5, 1);
  CHECK(proposed.back() == Propose::kTime);
}

TEST_CASE_METHOD(World, "a timer that is late on purpose wakes the node for no earlier deadline",
                 "[grants][GRANT-3]") {
  server.next_deadline_ns = 1'000'000'000;
  step(5, 5, 1'000'000'000);
  REQUIRE(proposed.size() == 1);
  server.next_deadline_ns = 1'000'200'000;  // sooner than two TIME entries may follow each other
  step(6, 6, 1'000'100'000);
  CHECK(grants.due_ns() > server.next_deadline_ns);
  CHECK(grants.timer_ns() == server.next_deadline_ns);
  CHECK_FALSE(has_news(6, 6));
}
