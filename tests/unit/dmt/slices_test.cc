// SPDX-License-Identifier: Apache-2.0
// GOAL    All replicas have the same tick points at the same turns. The leader's node learns how
//         long slices are and when the next entry is wanted.
// METHOD  Entries are admitted one at a time without other threads; the test reports slices.
// CHECKS  SLICE-1, SLICE-2: the table of points, and the full table; which thread has the turn
//         among sliced threads (SLICE-3); early points (SLICE-4); ask_for_bubble(); report_slice().
#include "dmt/slices.h"

#include <catch2/catch.hpp>

#include "dmt/admission.h"
#include "dmt/run_queue.h"
#include "dmt/scheduler.h"
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

// Returns how often `act` rings the doorbell of a sleeping node.
int rings_of(World& world, const std::function<void()>& act) {
  rings = 0;
  set_doorbell([]() noexcept { ++rings; });
  world.w.scheduler.node_asleep.store(1);
  act();
  set_doorbell(nullptr);
  return rings;
}

constexpr std::uint64_t kGrant = 1000;

// A world whose main thread is sliced.
struct Sliced {
  World world;
  Layout& w = world.w;
  SchedulerState& s = w.scheduler;
  const Slot main = world.main;
  Sliced() {
    world.hold();
    end_slice(w, main);
  }
  // Returns the thread with the next turn under a grant; kNone: the grant is dropped.
  std::uint16_t next() {
    s.grant_left = kGrant;
    choose_beside_slices(w);
    return s.grant_left == kGrant ? s.run_queue.head : kNone;
  }
};

}  // namespace

TEST_CASE("a tick point of the log is valid from its admission on", "[slices][SLICE-1]") {
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

TEST_CASE("admitting a known tick point again changes only its weight", "[slices][SLICE-2]") {
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
  CHECK(t.points[0].bytes == 7);  // its stub exists and stays
  CHECK(t.points[0].dead_flags == 1);
  CHECK(t.points[1].weight_ps == 1000);
  // The same offset in another object, and another offset in that object.
  admit_tick_point(world.w, point_at(1, 3, 78));
  admit_tick_point(world.w, point_at(3, 4, 78));
  REQUIRE(t.used == 4);
  CHECK(t.points[0].weight_ps == 50);
  CHECK(t.points[2].weight_ps == 3);
  CHECK(t.points[3].weight_ps == 4);
}

TEST_CASE("a full table accepts no more tick points, but new weights", "[slices][SLICE-2]") {
  World world;
  world.hold();
  const TickPoints& t = world.w.tick_points;
  for (std::uint32_t i = 0; i < kTickPointsMax; ++i) admit_tick_point(world.w, point_at(i));
  REQUIRE(t.used == kTickPointsMax);
  admit_tick_point(world.w, point_at(kTickPointsMax));
  CHECK(t.used == kTickPointsMax);
  CHECK(t.changes == kTickPointsMax);
  CHECK(world.w.slice_report.slices.load() == 0);  // the member after the table
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

TEST_CASE("a bubble is requested from the leader's node after a slice if no entry waits",
          "[slices]") {
  World world;
  world.hold();
  SchedulerState& s = world.w.scheduler;
  const auto ask = [&world] { ask_for_bubble(world.w); };
  SECTION("a follower remembers the request for when it leads") {
    CHECK(rings_of(world, ask) == 0);
    CHECK(s.slice_wanted.load() == 1);
  }
  s.leading.store(1);
  SECTION("a bubble waits in the sequence") {
    world.bubble(kPlenty);
    CHECK(rings_of(world, ask) == 0);
    CHECK(s.slice_wanted.load() == 0);
    world.admit();
    CHECK(rings_of(world, ask) == 1);
  }
  SECTION("the leader sends one request") {
    CHECK(rings_of(world, ask) == 1);
    CHECK(s.slice_wanted.load() == 1);
    CHECK(rings_of(world, ask) == 0);
  }
  SECTION("a bubble fulfils the request, an input does not") {
    ask();
    world.signal_entry(10);
    world.admit();
    CHECK(s.slice_wanted.load() == 1);
    world.bubble(kPlenty);
    world.admit();
    CHECK(s.slice_wanted.load() == 0);
  }
}

TEST_CASE("the end of a slice uses up the grant", "[slices]") {
  World world;
  world.hold();
  end_slice(world.w, world.main);
  world.w.scheduler.leading.store(1);
  world.bubble(kPlenty);
  const std::uint64_t before = world.w.scheduler.admissions;
  put_turn(world.w, world.main, 7, 0, true);
  CHECK(world.w.scheduler.admissions == before + 1);
}

TEST_CASE("threads that are not sliced run before sliced threads", "[slices][SLICE-3]") {
  Sliced f;
  const Slot first = create_slot(f.w, 1), second = create_slot(f.w, 1);
  CHECK(f.next() == value(first));
  CHECK(f.s.slice_wanted.load() == 1);
  kill_slot(f.w, first);
  CHECK(f.next() == value(second));
  CHECK(f.s.grant_left == kGrant);  // the grant belongs to them
}

TEST_CASE("when only sliced threads are runnable, entries are admitted until a bubble comes",
          "[slices][SLICE-3]") {
  Sliced f;
  CHECK(f.next() == kNone);
  grant_slice(f.w, EntryType::kData);
  CHECK(f.next() == kNone);
  grant_slice(f.w, EntryType::kTime);
  CHECK(f.next() == kNone);
  grant_slice(f.w, EntryType::kBubble);
  CHECK(f.next() == value(f.main));
  CHECK(f.next() == kNone);  // once
}

TEST_CASE("a bubble grants a slice after the others, and the next entry grants one before them",
          "[slices][SLICE-3]") {
  Sliced f;
  const Slot other = create_slot(f.w, 1);
  grant_slice(f.w, EntryType::kBubble);
  SECTION("the others wait before their grant is used up") {
    CHECK(f.next() == value(other));
    kill_slot(f.w, other);
    CHECK(f.next() == value(f.main));
  }
  SECTION("the others use up their grant") {
    CHECK(f.next() == value(other));
    grant_slice(f.w, EntryType::kData);
    CHECK(f.next() == value(f.main));
    CHECK(f.next() == value(other));
  }
  SECTION("two bubbles in a row grant one slice at once") {
    grant_slice(f.w, EntryType::kBubble);
    CHECK(f.next() == value(f.main));
    CHECK(f.next() == value(other));
  }
}

TEST_CASE("sliced threads take turns in the order in which their slices ended",
          "[slices][SLICE-3]") {
  Sliced f;
  const Slot second = create_slot(f.w, 1), light = create_slot(f.w, 1);
  end_slice(f.w, second);  // after main, which is the head
  for (const Slot expected : {f.main, second, f.main, second}) {
    grant_slice(f.w, EntryType::kBubble);
    grant_slice(f.w, EntryType::kData);
    REQUIRE(f.next() == value(expected));
    remove(f.w, f.s.run_queue, value(expected));  // its slice ends
    push_back(f.w, f.s.run_queue, value(expected));
    REQUIRE(f.next() == value(light));
  }
}

TEST_CASE("a thread that waits is no longer sliced", "[slices][SLICE-3]") {
  Sliced f;
  grant_slice(f.w, EntryType::kBubble);
  CHECK(f.s.slice_grant == SliceGrant::kLast);
  SECTION("it waits") {
    const Slot other = f.world.spawn([&f](Slot me) {
      get_turn(f.w, me);
      signal(f.w, 5, kAll);
      release_slot(f.w, me);
      leave(f.w, me);
    });
    CHECK(value(other) != value(f.main));
    f.world.bubble(kPlenty);
    wait(f.w, f.main, 5, kNoDeadline, 1);
  }
  SECTION("it leaves by agreement") { detach(f.w, f.main, 1); }
  SECTION("it ends") { kill_slot(f.w, f.main); }
  CHECK(!f.w.slots[value(f.main)].sliced);
  CHECK(f.s.sliced_runnable == 0);
  CHECK(f.s.slice_grant == SliceGrant::kNone);  // no later computation gets it
}

TEST_CASE("without sliced threads a bubble grants no slice, and no grant is dropped", "[slices]") {
  World world;
  world.hold();
  SchedulerState& s = world.w.scheduler;
  grant_slice(world.w, EntryType::kBubble);
  CHECK(s.slice_grant == SliceGrant::kNone);
  choose_beside_slices(world.w);
  CHECK(s.grant_left == kPlenty);
  CHECK(s.slice_wanted.load() == 0);
}

TEST_CASE("output of the other threads is sent before a sliced thread continues", "[slices]") {
  Sliced f;
  const auto end_operation = [&f] {
    f.s.output_pending = 1;
    f.world.bubble(kPlenty);
    put_turn(f.w, f.main, 7, 0, false);
  };
  SECTION("it waits while others run") {
    (void)create_slot(f.w, 1);
    CHECK(rings_of(f.world, end_operation) == 0);
  }
  SECTION("no other thread runs") { CHECK(rings_of(f.world, end_operation) == 1); }
}

TEST_CASE("the node sees the last slice that ended and the number of ended slices", "[slices]") {
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

TEST_CASE("slices: an early point is valid from its clock on", "[slices][SLICE-4]") {
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

TEST_CASE("slices: an early point that was passed is recorded but not admitted",
          "[slices][SLICE-4]") {
  World world;
  const EarlyPoint early{point_at(1), 0};
  REQUIRE(add_early_point(world.w, early, true));
  admit_early_points(world.w);
  CHECK(has_early_point(world.w, early));
  CHECK(world.w.tick_points.used == 0);
}

TEST_CASE("slices: the number of early points is limited", "[slices]") {
  World world;
  for (std::uint32_t i = 0; i < kEarlyPointsMax; ++i) {
    REQUIRE(add_early_point(world.w, {point_at(i), i}, false));
  }
  CHECK_FALSE(add_early_point(world.w, {point_at(kEarlyPointsMax), 1}, false));
  CHECK(add_early_point(world.w, {point_at(0), 0}, false));
}
