// SPDX-License-Identifier: Apache-2.0
// GOAL    The turns that the node reads are consistent: turns that the server may be overwriting
// are
//         left out, also those that it reached while the node read.
// METHOD  The test fills the segment's ring as a server would.
#include "proxy/host/turns.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "dmt/scheduler.h"
#include "tests/unit/node/segment_memory.h"

using namespace crane;
using namespace crane::node;

namespace {

struct Fixture : test::SegmentMemory {
  // As dmt/scheduler.cc does at the end of a turn.
  void turn() {
    const std::uint64_t clock = __atomic_add_fetch(&w.scheduler.clock, 1, __ATOMIC_RELEASE);
    w.turns[clock % dmt::kTurnHistory].result = clock;
    w.turns[(clock + 1) % dmt::kTurnHistory].object = 0;
  }
};

}  // namespace

TEST_CASE("recent turns: all of a young server, the newest of an old one", "[turns]") {
  Fixture f;
  CHECK(recent_turns(f.w, 0).turns.empty());
  for (int i = 0; i < 100; ++i) f.turn();
  RecentTurns recent = recent_turns(f.w, 90);
  CHECK(recent.first == 1);
  REQUIRE(recent.turns.size() == 90);
  CHECK(recent.turns[89].result == 90);
  for (int i = 0; i < 10'000; ++i) f.turn();
  recent = recent_turns(f.w, 10'000);
  // Turn 10,102 may be in progress: it uses the place of turn 10,102 - kTurnHistory.
  CHECK(recent.first == 10'103 - dmt::kTurnHistory);
  REQUIRE(recent.turns.size() == 10'000 - recent.first + 1);
  CHECK(recent.turns.front().result == recent.first);
  CHECK(recent_turns(f.w, 5000).turns.empty());
}

TEST_CASE("recent turns: none is torn while the server continues", "[turns]") {
  Fixture f;
  std::atomic<bool> stop{false};
  std::thread server([&] {
    while (!stop) f.turn();
  });
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t now = __atomic_load_n(&f.w.scheduler.clock, __ATOMIC_ACQUIRE);
    if (now == 0) continue;
    const RecentTurns recent = recent_turns(f.w, now - 1);
    bool whole = true;
    for (std::size_t n = 0; n < recent.turns.size(); ++n) {
      whole = whole && recent.turns[n].result == recent.first + n;
    }
    REQUIRE(whole);
  }
  stop = true;
  server.join();
}
