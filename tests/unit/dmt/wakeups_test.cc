// SPDX-License-Identifier: Apache-2.0
// GOAL    No wake-up is lost, however the hand-offs meet.
// METHOD  Tight races, many times: each side does its part exactly once, nobody looks again later.
// CHECKS  leave_turn_lying against admit_from_node; await_turn against pass_turn; T1; the doorbell.
#include <catch2/catch.hpp>

#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 6;
constexpr int kOneShots = 20'000;
constexpr int kPassings = 60'000;

std::atomic<int> rings{0};

void end_thread(Layout& w, Slot me) {
  get_turn(w, me);
  release_slot(w, me);
  leave(w, me);
}

}  // namespace

TEST_CASE("one push and one call of admit_from_node are enough", "[wakeups]") {
  // Every entry grants one turn, so that after each the thread leaves the turn lying, just when
  // the next entry comes.
  World world;
  std::atomic<bool> over{false};
  world.run_as(world.main, [&](Slot me) {
    for (int i = 0; i < kOneShots; ++i) {
      get_turn(world.w, me);
      put_turn(world.w, me, kOp, 0, false);
    }
    over = true;
    end_thread(world.w, me);
  });
  SchedulerState& s = world.w.scheduler;
  world.start(1);
  for (int i = 0; !over.load(); ++i) {
    admit_from_node(world.w);
    const std::uint64_t pushed = world.last_index();
    world.until("the entry is admitted", [&] { return s.applied_index.load() == pushed; });
    for (int pause = i % 200; pause > 0; --pause) __builtin_ia32_pause();
    world.bubble(1);
  }
  world.drive();
  CHECK(s.clock >= kOneShots);
}

TEST_CASE("a passed turn always arrives", "[wakeups]") {
  for (const std::uint32_t spin : {0u, 30u}) {
    World world({.spin = spin});
    std::atomic<int> inside{0};
    int overlaps = 0;
    for (int t = 0; t < 3; ++t) {
      world.spawn([&, t](Slot me) {
        for (int i = 0; i < kPassings / 3; ++i) {
          get_turn(world.w, me);
          if (inside.exchange(1) != 0) ++overlaps;  // T1
          inside = 0;
          put_turn(world.w, me, kOp, 0, false);
          for (int pause = (i * 7 + t * 13) % 60; pause > 0; --pause) __builtin_ia32_pause();
        }
        end_thread(world.w, me);
      });
    }
    world.run_as(world.main, [&](Slot me) { end_thread(world.w, me); });
    world.start(kPlenty);
    world.drive();
    CHECK(overlaps == 0);
  }
}

TEST_CASE("a node that sleeps is woken for output, stalls and earlier deadlines", "[wakeups]") {
  World world;
  set_doorbell([]() noexcept { rings.fetch_add(1); });
  SchedulerState& s = world.w.scheduler;
  world.start(3);
  REQUIRE(admit_from_node(world.w));
  const auto ringing = [&](const std::function<void()>& act) {
    rings = 0;
    s.node_asleep.store(1);
    act();
    return rings.load();
  };
  // Nobody rings for a turn alone, and nobody rings a node that is awake.
  CHECK(ringing([&] { put_turn(world.w, world.main, kOp, 0, false); }) == 0);
  CHECK(ringing([&] {
          s.node_asleep.store(0);
          ring_doorbell(world.w);
        }) == 0);
  CHECK(ringing([&] {
          ring_doorbell(world.w);
          ring_doorbell(world.w);  // once until it sleeps again
        }) == 1);
  // A follower's stall is not its node's business; the leader's is.
  put_turn(world.w, world.main, kOp, 0, false);
  CHECK(ringing([&] { put_turn(world.w, world.main, kOp, 0, false); }) == 0);
  CHECK(s.stalled.load() == 1);
  s.leading.store(1);
  world.bubble(1);
  REQUIRE(admit_from_node(world.w));
  CHECK(ringing([&] { put_turn(world.w, world.main, kOp, 0, false); }) == 1);
  // Output rings when the turn is passed on.
  world.bubble(5);
  REQUIRE(admit_from_node(world.w));
  CHECK(ringing([&] {
          reserve_output(world.w, 32);
          commit_output(world.w, 32);
        }) == 0);
  const Slot other = create_slot(world.w, kMainProcess);
  CHECK(ringing([&] { put_turn(world.w, world.main, kOp, 0, true); }) == 1);
  CHECK(has_turn(world.w, other));
  set_doorbell(nullptr);
}

TEST_CASE("a stall that ended by itself is not reported any more", "[wakeups]") {
  // The thread leaves the turn, sees that an entry came meanwhile and takes the turn back.
  World world;
  std::atomic<bool> over{false};
  world.run_as(world.main, [&](Slot me) {
    for (int i = 0; i < kOneShots / 4; ++i) {
      get_turn(world.w, me);
      put_turn(world.w, me, kOp, 0, false);
    }
    get_turn(world.w, me);
    over = world.w.scheduler.stalled.load() == 0;
    release_slot(world.w, me);
    leave(world.w, me);
  });
  world.start(1);
  REQUIRE(admit_from_node(world.w));
  world.drive([&](bool) { world.bubble(1); });
  CHECK(over.load());
}
