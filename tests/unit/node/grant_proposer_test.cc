// SPDX-License-Identifier: Apache-2.0
// GOAL    The leader proposes BUBBLE and TIME when its server needs them, and a node that is about
//         to sleep sees what changed since it looked.
// METHOD  A segment whose scheduler's words the test sets, as the server's threads would.
// CHECKS  OWN-1; news; the deadline that the server is told of.
#include "proxy/host/grant_proposer.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/node/segment_memory.h"

using namespace crane;
using namespace crane::node;

namespace {

struct World : test::SegmentMemory {
  std::vector<EntryType> proposed;
  GrantProposer grants{w, {}};

  World() : SegmentMemory(serial()) {
    w.scheduler.holder = dmt::kHolderIdle;
    w.scheduler.next_deadline = proxy::kNever;
    w.scheduler.node_timer = proxy::kNever;
  }
  void step(std::uint64_t applied, std::uint64_t last, std::int64_t now = 0) {
    grants.step({Index{applied}, Index{last}, now},
                [this](EntryType type, GrantTurns) { proposed.push_back(type); });
  }
};

}  // namespace

TEST_CASE_METHOD(World, "a server that wants turns gets a BUBBLE", "[grants]") {
  w.scheduler.stalled = 1;
  step(5, 5);
  CHECK(proposed == std::vector{EntryType::kBubble});
}

TEST_CASE_METHOD(World, "nothing is proposed while an entry waits for its admission",
                 "[grants][OWN-1]") {
  w.scheduler.next_deadline = 10;
  step(4, 5, 1'000'000'000);
  CHECK(proposed.empty());
}

TEST_CASE_METHOD(World, "a deadline that has come is proposed as TIME", "[grants]") {
  w.scheduler.next_deadline = 10;
  step(5, 5, 1'000'000'000);
  CHECK(proposed == std::vector{EntryType::kTime});
}

TEST_CASE_METHOD(World, "a deadline that is still to come sets the timer", "[grants]") {
  w.scheduler.next_deadline = 7'000'000'000;
  step(5, 5, 1'000'000'000);
  CHECK(proposed.empty());
  CHECK(grants.due_ns() >= 7'000'000'000);
  CHECK(w.scheduler.node_timer == 7'000'000'000);
  grants.pause();
  CHECK(grants.due_ns() == proxy::kNever);
}

TEST_CASE_METHOD(World, "what the server did since is news", "[grants]") {
  step(5, 5);
  CHECK_FALSE(grants.has_news(Index{5}, Index{5}));
  CHECK(grants.has_news(Index{6}, Index{5}));
  w.scheduler.stalled = 1;
  CHECK(grants.has_news(Index{5}, Index{5}));
  w.scheduler.stalled = 0;
  w.scheduler.grant_low = 1;
  CHECK(grants.has_news(Index{5}, Index{5}));
  w.scheduler.grant_low = 0;
  w.scheduler.next_deadline = 3;  // earlier than the timer
  CHECK(grants.has_news(Index{5}, Index{5}));
  CHECK_FALSE(grants.has_news(Index{5}, Index{6}));
}
