// SPDX-License-Identifier: Apache-2.0
// GOAL    A server ends at one clock, whatever its other processes do. The next server continues
//         from there, in the same way on every replica.
// METHOD  Worlds with threads as slots; two segments that continue from the same state.
// CHECKS  restart.h; RESTART's SIGTERM; no slot has a turn after the main process has ended.
#include "dmt/restart.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>

#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 7;

}  // namespace

TEST_CASE("restart: the first entry sends SIGTERM to the main process, the second sends no signal",
          "[restart]") {
  World world;
  world.hold();
  world.w.processes[kMainProcess].dispositions[SIGTERM] = Disposition::kHandler;
  RestartBody body{RestartBody::kBegin};
  world.push(EntryType::kRestart, kPlenty, &body, sizeof body);
  world.admit();
  CHECK(world.w.processes[kMainProcess].pending_signals == 0);
  body.step = RestartBody::kEnd;
  world.push(EntryType::kRestart, kPlenty, &body, sizeof body);
  world.admit();
  CHECK(take_signal(world.w, world.main) == SIGTERM);
}

TEST_CASE("restart: when the main process has ended, no other process has turns", "[restart]") {
  World world({.mode = Mode::kSerial});
  Layout& w = world.w;
  world.hold();
  const Child child = create_process(w, kMainProcess);
  REQUIRE(w.slots[value(child.slot)].state == SlotState::kRunnable);
  world.bubble(kPlenty);
  end_process(w, kMainProcess, 0);
  leave(w, world.main);
  const std::uint64_t clock = w.scheduler.clock;
  CHECK(w.scheduler.holder.load() == kHolderIdle);  // not the child's
  const std::uint64_t last = world.bubble(kPlenty);
  CHECK(admit_from_node(w));
  CHECK(w.scheduler.applied_index.load() == last);
  CHECK(w.scheduler.holder.load() == kHolderIdle);
  CHECK(w.scheduler.clock == clock);
  CHECK_FALSE(is_over(w));  // the node does not have the turn
  REQUIRE(take_unowned_turn(w));
  CHECK(is_over(w));
}

TEST_CASE("restart: a running server is over when all of it sleeps for the turn", "[restart]") {
  World world({.mode = Mode::kSerial});
  Layout& w = world.w;
  world.hold();
  const Child child = create_process(w, kMainProcess);
  w.scheduler.holder.store(value(kNodeSlot));
  w.slots[value(world.main)].parked.store(1);
  CHECK_FALSE(is_over(w));  // the child has not begun
  w.slots[value(child.slot)].parked.store(1);
  CHECK(is_over(w));
  w.slots[value(child.slot)].state = SlotState::kDetached;
  CHECK_FALSE(is_over(w));  // it may be computing
  w.slots[value(child.slot)].arrived.store(1);
  CHECK(is_over(w));
}

TEST_CASE("restart: clock, hash and time continue, and random streams do not repeat", "[restart]") {
  World one, other, third;
  one.hold();
  get_turn(one.w, one.main);
  put_turn(one.w, one.main, kOp, 3, false);
  one.bubble(0);
  const CarriedState carried = carried_of(one.w);
  REQUIRE(carried.clock > 0);
  continue_from(other.w, carried);
  CarriedState later = carried;
  later.admitted.index = Index{value(carried.admitted.index) + 1};
  continue_from(third.w, later);
  const SchedulerState& s = other.w.scheduler;
  CHECK(s.clock == carried.clock);
  CHECK(s.hash == one.w.scheduler.hash);
  CHECK(s.now_ns == one.w.scheduler.now_ns);
  CHECK(s.applied_index.load() == value(carried.admitted.index));
  CHECK(s.stalled.load() == 1);
  CHECK(std::memcmp(s.seed, one.w.scheduler.seed, sizeof s.seed) != 0);
  CHECK(std::memcmp(s.seed, third.w.scheduler.seed, sizeof s.seed) != 0);
}
