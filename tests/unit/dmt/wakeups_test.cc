// SPDX-License-Identifier: Apache-2.0
// GOAL    No wake-up is lost, in any interleaving of the hand-offs.
// METHOD  Tight races, many times: each side does its part exactly once, and no thread looks again
//         later.
// CHECKS  leave_turn_unowned against admit_from_node; await_turn against pass_turn; DMT-T1; the
//         doorbell.
#include <poll.h>

#include <catch2/catch.hpp>

#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 6;
constexpr int kOneShots = 20'000;
constexpr int kPassings = 30'000;
constexpr std::uint32_t kSpin = 1'000;

std::atomic<int> rings{0};

void pause_physically(std::uint64_t count) {
  for (; count > 0; --count) __builtin_ia32_pause();
}

// Delays that shift the two sides against each other; any sequence without a short period would do.
std::uint64_t scatter(std::uint64_t i) { return i * 0x9E3779B97F4A7C15 >> 40; }

void end_thread(Layout& w, Slot me) {
  get_turn(w, me);
  release_slot(w, me);
  leave(w, me);
}

}  // namespace

TEST_CASE("one push and one call of admit_from_node are enough", "[wakeups]") {
  // Every entry grants one turn. After each turn the thread leaves the turn unowned just when the
  // next entry arrives.
  World world;
  std::atomic<bool> over{false};
  int stale_stalls = 0;
  world.run_as(world.main, [&](Slot me) {
    for (std::uint64_t i = 0; i < kOneShots; ++i) {
      get_turn(world.w, me);
      // A stall ends when a thread has the turn, also when the thread took it back itself.
      stale_stalls += world.w.scheduler.stalled.load() == 0 ? 0 : 1;
      pause_physically(scatter(i) % 8);
      put_turn(world.w, me, kOp, 0, false);
    }
    over = true;
    end_thread(world.w, me);
  });
  SchedulerState& s = world.w.scheduler;
  world.start(1);
  for (std::uint64_t i = 0; !over.load(); ++i) {
    admit_from_node(world.w);
    const std::uint64_t pushed = world.last_index();
    world.until("the entry is admitted", [&] { return s.applied_index.load() == pushed; });
    pause_physically(scatter(i + kOneShots) % 8);
    world.bubble(1);
  }
  world.drive();
  CHECK(s.clock >= kOneShots);
  CHECK(stale_stalls == 0);
}

TEST_CASE("a passed turn always arrives", "[wakeups]") {
  for (const std::uint32_t spin : {0u, kSpin}) {
    World world({.spin = spin});
    std::atomic<int> inside{0};
    std::atomic<int> ended{0};
    int overlaps = 0;
    for (std::uint64_t t = 0; t < 2; ++t) {
      world.spawn([&, t](Slot me) {
        for (std::uint64_t i = 0; i < kPassings / 2; ++i) {
          get_turn(world.w, me);
          if (inside.exchange(1) != 0) ++overlaps;  // DMT-T1
          // After a short turn both threads stay awake; a long turn ends just when the other falls
          // asleep.
          const std::uint64_t draw = scatter(i * 2 + t);
          if (spin > 0) pause_physically(draw % 2 == 0 ? draw % 64 : kSpin - 100 + draw % 200);
          inside = 0;
          put_turn(world.w, me, kOp, 0, false);
        }
        ended.fetch_add(1);
        end_thread(world.w, me);
      });
    }
    world.run_as(world.main, [&](Slot me) { end_thread(world.w, me); });
    // The node has nothing to do and must not take a core.
    world.start(kPlenty);
    admit_from_node(world.w);
    world.until("the last turn", [&] {
      if (ended.load() == 2) return true;
      ::poll(nullptr, 0, 1);
      return false;
    });
    world.drive();
    CHECK(overlaps == 0);
  }
}

TEST_CASE("a sleeping node is woken for output, stalls and earlier deadlines", "[wakeups]") {
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
  // A turn alone does not ring, and a node that is awake is not rung.
  CHECK(ringing([&] { put_turn(world.w, world.main, kOp, 0, false); }) == 0);
  CHECK(ringing([&] {
          s.node_asleep.store(0);
          ring_doorbell(world.w);
        }) == 0);
  CHECK(ringing([&] {
          ring_doorbell(world.w);
          ring_doorbell(world.w);  // once until the node sleeps again
        }) == 1);
  // A follower's stall does not wake its node; the leader's does.
  put_turn(world.w, world.main, kOp, 0, false);
  CHECK(ringing([&] { put_turn(world.w, world.main, kOp, 0, false); }) == 0);
  CHECK(s.stalled.load() == 1);
  s.leading.store(1);
  world.bubble(4);
  REQUIRE(admit_from_node(world.w));
  const auto turn = [&] { put_turn(world.w, world.main, kOp, 0, false); };
  CHECK(ringing(turn) == 0);
  CHECK(ringing(turn) == 1);  // half of the grant is used
  CHECK(ringing(turn) == 0);
  CHECK(ringing(turn) == 1);  // all of it
  // Output waits for a few hand-offs while a thread runs, and is sent at once otherwise.
  world.bubble(1'000);
  REQUIRE(admit_from_node(world.w));
  const auto write = [&] {
    reserve_output(world.w, 32);
    commit_output(world.w, 32);
  };
  CHECK(ringing(write) == 0);
  const Slot other = create_slot(world.w, kMainProcess);
  std::uint32_t hand_offs = 0;
  const auto pass = [&] {
    const Slot holder = hand_offs++ % 2 == 0 ? world.main : other;
    put_turn(world.w, holder, kOp, 0, true);
  };
  while (ringing(pass) == 0) REQUIRE(hand_offs < 100);
  CHECK(hand_offs == kHandOffsPerDoorbell);
  if (has_turn(world.w, other)) pass();
  release_slot(world.w, other);
  CHECK(ringing([&] {
          write();
          release_slot(world.w, world.main);
          leave(world.w, world.main);
        }) == 1);
  CHECK(s.holder.load() == kHolderIdle);
  set_doorbell(nullptr);
}
