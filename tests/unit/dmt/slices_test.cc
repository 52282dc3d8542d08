// SPDX-License-Identifier: Apache-2.0
// GOAL    All replicas have the same tick points at the same turns, and the leader's node learns
//         how long slices are and when the next entry is wanted.
// METHOD  One entry at a time, alone; slices are reported by the test.
// CHECKS  SLICE-1, SLICE-2: the table of points; the full table; ask_for_next_entry(),
//         report_slice().
#include "dmt/slices.h"

#include <catch2/catch.hpp>

#include "dmt/admission.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

TickPoint point_at(std::uint32_t offset, std::uint32_t weight_ps = 1000, std::uint64_t build = 77) {
  return {build, offset, weight_ps, 7, 1};
}

void push(World& world, const TickPoint& point) {
  world.push(EntryType::kTickPoint, kPlenty, &point, sizeof point);
}

int rings = 0;

// How often the node's doorbell rings meanwhile; the node sleeps.
int rings_of(World& world, const std::function<void()>& act) {
  rings = 0;
  set_doorbell([]() noexcept { ++rings; });
  world.w.scheduler.node_asleep.store(1);
  act();
  set_doorbell(nullptr);
  return rings;
}

}  // namespace

TEST_CASE("a tick point of the log is one from its admission on", "[slices][SLICE-1]") {
  World world;
  world.hold();
  const TickPoints& t = world.w.tick_points;
  push(world, point_at(1));
  push(world, point_at(2));
  CHECK(t.used == 0);
  CHECK(t.changes == 0);
  REQUIRE(admit_next(world.w));
  REQUIRE(t.used == 1);
  CHECK(t.changes == 1);
  world.admit();
  REQUIRE(t.used == 2);
  CHECK(t.changes == 2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    CHECK(t.points[i].build == 77);
    CHECK(t.points[i].offset == i + 1);
    CHECK(t.points[i].weight_ps == 1000);
    CHECK(t.points[i].bytes == 7);
    CHECK(t.points[i].dead_flags == 1);
  }
  // Neither turns nor reports change them.
  put_turn(world.w, world.main, 7, 0, false);
  report_slice(world.w, 0, 1000, 123);
  world.time(5'000'000, kPlenty);
  world.admit();
  CHECK(t.used == 2);
  CHECK(t.changes == 2);
}

TEST_CASE("a tick point that is one already gets another weight alone", "[slices][SLICE-2]") {
  World world;
  world.hold();
  const TickPoints& t = world.w.tick_points;
  admit_tick_point(world.w, point_at(1));
  admit_tick_point(world.w, point_at(2));
  TickPoint again = point_at(1, 50);
  again.bytes = 9;
  again.dead_flags = 0;
  admit_tick_point(world.w, again);
  REQUIRE(t.used == 2);
  CHECK(t.changes == 3);
  CHECK(t.points[0].weight_ps == 50);
  CHECK(t.points[0].bytes == 7);  // its stub is there, and stays
  CHECK(t.points[0].dead_flags == 1);
  CHECK(t.points[1].weight_ps == 1000);
  // The same offset in another object, and the other way around.
  admit_tick_point(world.w, point_at(1, 3, 78));
  admit_tick_point(world.w, point_at(3, 4, 78));
  REQUIRE(t.used == 4);
  CHECK(t.points[0].weight_ps == 50);
  CHECK(t.points[2].weight_ps == 3);
  CHECK(t.points[3].weight_ps == 4);
}

TEST_CASE("a full table takes no more tick points, but other weights", "[slices][SLICE-2]") {
  World world;
  world.hold();
  const TickPoints& t = world.w.tick_points;
  for (std::uint32_t i = 0; i < kTickPointsMax; ++i) admit_tick_point(world.w, point_at(i));
  REQUIRE(t.used == kTickPointsMax);
  admit_tick_point(world.w, point_at(kTickPointsMax));
  CHECK(t.used == kTickPointsMax);
  CHECK(t.changes == kTickPointsMax);
  CHECK(world.w.slice_report.slices.load() == 0);  // what is behind the table
  admit_tick_point(world.w, point_at(kTickPointsMax - 1, 5));
  CHECK(t.points[kTickPointsMax - 1].weight_ps == 5);
  CHECK(t.changes == kTickPointsMax + 1);
}

TEST_CASE("a tick point of too few bytes fences the replica", "[slices][fence]") {
  const TickPoint point = point_at(1);
  CHECK(in_child([&point] {
          World world;
          world.hold();
          world.push(EntryType::kTickPoint, kPlenty, &point, sizeof point - 1);
          world.admit();
        }) == kFenced);
}

TEST_CASE("the leader's node is asked for the entry behind a slice, if there is none", "[slices]") {
  World world;
  world.hold();
  SchedulerState& s = world.w.scheduler;
  const auto ask = [&world] { ask_for_next_entry(world.w); };
  SECTION("a follower asks for nothing") {
    CHECK(rings_of(world, ask) == 0);
    CHECK(s.grant_low.load() == 0);
  }
  s.leading.store(1);
  SECTION("one waits in the sequence") {
    world.bubble(kPlenty);
    CHECK(rings_of(world, ask) == 0);
    CHECK(s.grant_low.load() == 0);
    world.admit();
    CHECK(rings_of(world, ask) == 1);
  }
  SECTION("the leader does") {
    CHECK(rings_of(world, ask) == 1);
    CHECK(s.grant_low.load() == 1);
  }
}

TEST_CASE("the node sees the last slice that ended, and how many did", "[slices]") {
  World world;
  const SliceReport& report = world.w.slice_report;
  CHECK(report.slices.load() == 0);
  report_slice(world.w, 3, 1000, 5'000'000);
  CHECK(report.slices.load() == 1);
  CHECK(report.point.load() == 3);
  CHECK(report.weight_ps.load() == 1000);
  CHECK(report.cpu_ns.load() == 5'000'000);
  report_slice(world.w, 4, 70, 0);
  CHECK(report.slices.load() == 2);
  CHECK(report.point.load() == 4);
  CHECK(report.weight_ps.load() == 70);
  CHECK(report.cpu_ns.load() == 0);
}

TEST_CASE("slices: an early point counts from its clock on", "[slices][SLICE-3]") {
  World world;
  Layout& w = world.w;
  const EarlyPoint early{point_at(1), w.scheduler.clock + 2};
  REQUIRE_FALSE(has_early_point(w, early));
  REQUIRE(add_early_point(w, early, false));
  CHECK(has_early_point(w, early));
  CHECK_FALSE(has_early_point(w, {point_at(1), early.clock + 1}));
  CHECK_FALSE(has_early_point(w, {point_at(2), early.clock}));
  admit_early_points(w);
  ++w.scheduler.clock;
  admit_early_points(w);
  CHECK(w.tick_points.used == 0);
  CHECK(w.early_points.waiting != 0);
  ++w.scheduler.clock;
  admit_early_points(w);
  REQUIRE(w.tick_points.used == 1);
  CHECK(w.tick_points.points[0].offset == 1);
  CHECK(w.early_points.waiting == 0);
  CHECK(has_early_point(w, early));
  CHECK(add_early_point(w, early, false));  // it is there
  CHECK(w.early_points.waiting == 0);
}

TEST_CASE("slices: an early point that was passed is known and not admitted", "[slices][SLICE-3]") {
  World world;
  const EarlyPoint early{point_at(1), 0};
  REQUIRE(add_early_point(world.w, early, true));
  admit_early_points(world.w);
  CHECK(has_early_point(world.w, early));
  CHECK(world.w.tick_points.used == 0);
}

TEST_CASE("slices: there is room for so many early points", "[slices]") {
  World world;
  for (std::uint32_t i = 0; i < kEarlyPointsMax; ++i) {
    REQUIRE(add_early_point(world.w, {point_at(i), i}, false));
  }
  CHECK_FALSE(add_early_point(world.w, {point_at(kEarlyPointsMax), 1}, false));
  CHECK(add_early_point(world.w, {point_at(0), 0}, false));
}
