// SPDX-License-Identifier: Apache-2.0
// GOAL    The schedule depends only on the log and on the threads' operations.
// METHOD  Real threads as slots; the test is the node.
// CHECKS  DMT-T1..T5, grants, quiescence, deadlines, both modes, slot reuse.
#include <catch2/catch.hpp>
#include <csignal>

#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 7;

}  // namespace

TEST_CASE("turns go round robin", "[turns]") {
  std::vector<int> expected;
  for (int i = 0; i < 50; ++i) {
    for (int t = 0; t < 4; ++t) expected.push_back(t);
  }
  CHECK(rotation({}, 4, 50) == expected);
}

TEST_CASE("serial mode has the same order of turns", "[turns]") {
  CHECK(rotation({.mode = Mode::kSerial}, 4, 50) == rotation({}, 4, 50));
}

TEST_CASE("serial mode: only the turn holder runs", "[turns]") {
  World world({.mode = Mode::kSerial});
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  for (int t = 0; t < 4; ++t) {
    world.spawn([&](Slot me) {
      get_turn(world.w, me);
      for (int i = 0; i < 200; ++i) {
        // Code between two operations.
        if (inside.fetch_add(1) != 0) overlaps.fetch_add(1);
        if (i % 16 == 0) std::this_thread::yield();
        inside.fetch_sub(1);
        put_turn(world.w, me, kOp, 0, false);
      }
      finish(world.w, me);
    });
  }
  world.run_as(world.main, [&](Slot me) { finish(world.w, me); });
  world.start(kPlenty);
  world.drive();
  CHECK(overlaps.load() == 0);
}

TEST_CASE("a thread that yields the turn for a call lets the others run, and comes after them",
          "[turns]") {
  for (const Mode mode : {Mode::kSerial, Mode::kParallel}) {
    World world({.mode = mode, .quantum = 4});
    std::atomic<bool> in_call{false}, others_came{false};
    std::vector<int> trace;
    world.spawn([&](Slot me) {
      get_turn(world.w, me);
      yield_without_turn(world.w, me, kOp);
      // As in a call that lasts until the others have run, which wait for its begin.
      in_call.store(true);
      while (!others_came.load()) std::this_thread::yield();
      get_turn(world.w, me);
      trace.push_back(1);
      put_turn(world.w, me, kOp, 0, false);
      finish(world.w, me);
    });
    for (int t = 2; t < 4; ++t) {
      world.spawn([&, t](Slot me) {
        for (int i = 0; i < 6; ++i) {
          get_turn(world.w, me);
          trace.push_back(t);
          while (!in_call.load()) std::this_thread::yield();
          if (t == 3) others_came.store(true);
          put_turn(world.w, me, kOp, 0, false);
        }
        finish(world.w, me);
      });
    }
    world.run_as(world.main, [&](Slot me) { finish(world.w, me); });
    world.start(kPlenty);
    world.drive();
    CHECK(trace == std::vector<int>{2, 2, 2, 2, 3, 3, 3, 3, 1, 2, 2, 3, 3});
  }
}

TEST_CASE("no entry is admitted while a thread has yielded the turn for a call", "[turns]") {
  World world({.mode = Mode::kSerial});
  std::atomic<bool> ended{false};
  std::uint64_t admitted = 0;
  world.spawn([&](Slot me) {
    get_turn(world.w, me);
    const std::uint64_t before = value(world.w.scheduler.admitted.index);
    yield_without_turn(world.w, me, kOp);
    // An entry waits, and the other threads wait or have ended: this thread gets the turn.
    get_turn(world.w, me);
    admitted = value(world.w.scheduler.admitted.index) - before;
    finish(world.w, me);
    ended.store(true);
  });
  world.spawn([&](Slot me) {
    get_turn(world.w, me);
    wait(world.w, me, 0, kOrigin + 1000, kOp);
    finish(world.w, me);
  });
  world.run_as(world.main, [&](Slot me) { finish(world.w, me); });
  world.start(kPlenty);
  world.time(1000, kPlenty);
  world.drive();
  CHECK(ended.load());
  CHECK(admitted == 0);
}

TEST_CASE("parallel mode: code between turns overlaps", "[turns]") {
  World world;
  std::atomic<bool> second_came{false};
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    put_turn(world.w, me, kOp, 0, false);
    // This thread computes until the other one has had its turn.
    world.until("the second thread's turn", [&] { return second_came.load(); });
    finish(world.w, me);
  });
  world.spawn([&](Slot me) {
    get_turn(world.w, me);
    put_turn(world.w, me, kOp, 0, false);
    second_came = true;
    finish(world.w, me);
  });
  world.start(kPlenty);
  world.drive();
  CHECK(second_came.load());
}

TEST_CASE("waiters of one object are woken in order of arrival", "[turns]") {
  World world;
  constexpr std::uint64_t kObject = 4711;
  std::vector<int> woken;
  for (int t = 0; t < 5; ++t) {
    world.spawn([&, t](Slot me) {
      get_turn(world.w, me);
      CHECK(wait(world.w, me, kObject, kNoDeadline, kOp) == WakeReason::kSignalled);
      woken.push_back(t);
      put_turn(world.w, me, kOp, 0, false);
      finish(world.w, me);
    });
  }
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    put_turn(world.w, me, kOp, 0, true);  // the others run and wait
    get_turn(world.w, me);
    CHECK(signal(world.w, kObject + 1, kAll) == 0);
    CHECK(signal(world.w, kObject, 2) == 2);
    CHECK(signal(world.w, kObject, 1) == 1);
    put_turn(world.w, me, kOp, 0, true);
    get_turn(world.w, me);
    CHECK(woken == std::vector<int>{0, 1, 2});
    CHECK(signal(world.w, kObject, kAll) == 2);
    CHECK(signal(world.w, kObject, kAll) == 0);
    put_turn(world.w, me, kOp, 0, false);
    finish(world.w, me);
  });
  world.start(kPlenty);
  world.drive();
  CHECK(woken == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("objects that share a bucket are kept apart", "[turns]") {
  // More objects than buckets.
  World world;
  constexpr int kThreads = 40;
  std::vector<std::uint64_t> woken;
  for (int t = 0; t < kThreads; ++t) {
    world.spawn([&, t](Slot me) {
      get_turn(world.w, me);
      const auto object = static_cast<std::uint64_t>(1 + t * 1024);
      wait(world.w, me, object, kNoDeadline, kOp);
      woken.push_back(object);
      put_turn(world.w, me, kOp, 0, false);
      finish(world.w, me);
    });
  }
  std::vector<std::uint64_t> expected;
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    put_turn(world.w, me, kOp, 0, true);
    get_turn(world.w, me);
    for (int t = kThreads - 1; t >= 0; --t) {
      const auto object = static_cast<std::uint64_t>(1 + t * 1024);
      expected.push_back(object);
      CHECK(signal(world.w, object, kAll) == 1);
    }
    put_turn(world.w, me, kOp, 0, false);
    finish(world.w, me);
  });
  world.start(kPlenty);
  world.drive();
  CHECK(woken == expected);
}

TEST_CASE("deadlines expire in the order (deadline, arming)", "[turns][time]") {
  World world;
  const std::int64_t after[] = {300, 100, 200, 100, 300, 50};
  std::vector<int> woken;
  for (int t = 0; t < 6; ++t) {
    world.spawn([&, t](Slot me) {
      get_turn(world.w, me);
      CHECK(wait(world.w, me, 0, kOrigin + after[t], kOp) == WakeReason::kTimeout);
      woken.push_back(t);
      put_turn(world.w, me, kOp, 0, false);
      finish(world.w, me);
    });
  }
  world.run_as(world.main, [&](Slot me) { finish(world.w, me); });
  world.start(kPlenty);
  // One TIME entry wakes all deadlines up to its stamp.
  world.time(60, kPlenty);
  world.time(1000, kPlenty);
  world.drive();
  CHECK(woken == std::vector<int>{5, 1, 3, 2, 0, 4});
}

TEST_CASE("a deadline in the past times out at once, and the others run first", "[turns][time]") {
  World world;
  std::vector<int> trace;
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    CHECK(wait(world.w, me, 99, kOrigin - 1, kOp) == WakeReason::kTimeout);
    trace.push_back(0);
    put_turn(world.w, me, kOp, 0, false);
    finish(world.w, me);
  });
  world.spawn([&](Slot me) {
    get_turn(world.w, me);
    trace.push_back(1);
    put_turn(world.w, me, kOp, 0, false);
    finish(world.w, me);
  });
  world.start(kPlenty);
  world.drive();
  CHECK(trace == std::vector<int>{1, 0});
}

TEST_CASE("a signal before the deadline cancels the deadline", "[turns][time]") {
  World world;
  std::vector<int> trace;
  world.spawn([&](Slot me) {
    get_turn(world.w, me);
    CHECK(wait(world.w, me, 5, kOrigin + 100, kOp) == WakeReason::kSignalled);
    CHECK(world.w.scheduler.timers_armed == 0);
    CHECK(wait(world.w, me, 5, kOrigin + 200, kOp) == WakeReason::kTimeout);
    CHECK(world.w.scheduler.now_ns >= kOrigin + 200);
    CHECK(signal(world.w, 5, kAll) == 0);  // it left the bucket
    put_turn(world.w, me, kOp, 0, false);
    finish(world.w, me);
  });
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    put_turn(world.w, me, kOp, 0, true);
    get_turn(world.w, me);
    CHECK(signal(world.w, 5, 1) == 1);
    put_turn(world.w, me, kOp, 0, false);
    finish(world.w, me);
  });
  world.start(kPlenty);
  world.drive();
}

TEST_CASE("used-up grants stall the clock until a bubble comes", "[turns][grants]") {
  World world;
  std::atomic<int> turns{0};
  world.run_as(world.main, [&](Slot me) {
    for (int i = 0; i < 25; ++i) {
      get_turn(world.w, me);
      turns.fetch_add(1);
      put_turn(world.w, me, kOp, 0, false);
    }
    finish(world.w, me);
  });
  SchedulerState& s = world.w.scheduler;
  const auto stalled_at = [&](std::uint64_t clock) {
    world.until("a stall", [&] { return s.holder.load() == kHolderIdle; });
    CHECK(s.clock == clock);
    CHECK(s.published_clock.load() == clock);
    CHECK(s.stalled.load() == 1);
    CHECK(s.grant_left == 0);
  };
  world.start(10);
  REQUIRE(admit_from_node(world.w));
  stalled_at(10);
  CHECK_FALSE(admit_from_node(world.w));  // nothing to admit
  world.bubble(5);
  REQUIRE(admit_from_node(world.w));
  stalled_at(15);
  CHECK(turns.load() == 15);
  world.bubble(64);
  world.drive();
  CHECK(turns.load() == 25);
  CHECK(s.stalled.load() == 0);
}

TEST_CASE("entries without a grant are admitted at the same clock", "[turns][grants]") {
  World world;
  std::vector<std::uint64_t> clocks;
  world.run_as(world.main, [&](Slot me) {
    for (int i = 0; i < 12; ++i) {
      get_turn(world.w, me);
      clocks.push_back(value(world.w.scheduler.admitted.index));
      put_turn(world.w, me, kOp, 0, false);
    }
    finish(world.w, me);
  });
  world.start(0);     // 1
  world.bubble(0);    // 2
  world.bubble(3);    // 3
  world.bubble(0);    // 4
  world.bubble(0);    // 5
  world.bubble(100);  // 6
  world.drive();
  CHECK(clocks == std::vector<std::uint64_t>{3, 3, 3, 6, 6, 6, 6, 6, 6, 6, 6, 6});
}

TEST_CASE("quiescence drops the rest of the grant", "[turns][grants]") {
  World world;
  std::vector<std::uint64_t> seen;
  SchedulerState& s = world.w.scheduler;
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    wait(world.w, me, 0, kOrigin + 100, kOp);  // turn 1; no thread is runnable
    seen = {s.clock, value(s.admitted.index), s.grant_left};
    put_turn(world.w, me, kOp, 0, false);
    finish(world.w, me);
  });
  world.start(1000);
  REQUIRE(admit_from_node(world.w));
  world.until("quiescence", [&] { return s.holder.load() == kHolderIdle; });
  CHECK(s.grant_left == 0);
  CHECK(s.stalled.load() == 0);  // idle, not stalled: no bubble is wanted
  CHECK(s.next_deadline.load() == kOrigin + 100);
  world.bubble(50);  // admitted and dropped at once: its stamp is before the deadline
  REQUIRE(admit_from_node(world.w));
  CHECK(s.holder.load() == kHolderIdle);
  CHECK(s.grant_left == 0);
  CHECK(s.clock == 1);
  world.time(100, 7);
  world.drive();
  CHECK(seen == std::vector<std::uint64_t>{1, 3, 7});
}

TEST_CASE("a bubble is requested from the leader when half of a grant is used", "[turns][grants]") {
  World world;
  world.start(20);
  world.w.scheduler.leading.store(1);
  REQUIRE(admit_from_node(world.w));
  SchedulerState& s = world.w.scheduler;
  for (int i = 0; i < 9; ++i) put_turn(world.w, world.main, kOp, 0, false);
  CHECK(s.grant_low.load() == 0);
  put_turn(world.w, world.main, kOp, 0, false);
  CHECK(s.grant_low.load() == 1);
  world.bubble(20);
  for (int i = 0; i < 10; ++i) put_turn(world.w, world.main, kOp, 0, false);
  CHECK(s.grant_low.load() == 0);  // the bubble was taken without a pause
  CHECK(s.grant_left == 20);
  CHECK(has_turn(world.w, world.main));
}

TEST_CASE("no bubble is requested if an entry follows", "[turns][grants]") {
  World world;
  world.start(20);
  world.w.scheduler.leading.store(1);
  REQUIRE(admit_from_node(world.w));
  world.bubble(20);
  for (int i = 0; i < 15; ++i) put_turn(world.w, world.main, kOp, 0, false);
  CHECK(world.w.scheduler.grant_low.load() == 0);
}

TEST_CASE("an entry is admitted at the end of the grant, whenever it arrives", "[turns][grants]") {
  for (const bool early : {false, true}) {
    World world;
    if (early) {
      world.start(10);
      world.bubble(10);
    } else {
      world.start(10);
    }
    REQUIRE(admit_from_node(world.w));
    if (!early) world.bubble(10);
    for (int i = 0; i < 9; ++i) put_turn(world.w, world.main, kOp, 0, false);
    CHECK(value(world.w.scheduler.admitted.index) == 1);
    put_turn(world.w, world.main, kOp, 0, false);
    CHECK(value(world.w.scheduler.admitted.index) == 2);
  }
}

TEST_CASE("arrival mode admits an entry at the turn at which it arrives", "[turns][grants]") {
  World world({.admission = Admission::kArrival});
  world.start(1);
  REQUIRE(admit_from_node(world.w));
  for (int i = 0; i < 5; ++i) put_turn(world.w, world.main, kOp, 0, false);
  CHECK(value(world.w.scheduler.admitted.index) == 1);
  world.bubble(1);
  put_turn(world.w, world.main, kOp, 0, false);
  CHECK(value(world.w.scheduler.admitted.index) == 2);
  CHECK(has_turn(world.w, world.main));
}

TEST_CASE("slots are reused first in, first out", "[turns][slots]") {
  World world;
  world.hold();
  Layout& w = world.w;
  const Slot a = create_slot(w, kMainProcess);
  const Slot b = create_slot(w, kMainProcess);
  CHECK(value(world.main) == 1);
  CHECK(value(a) == 2);
  CHECK(value(b) == 3);
  const std::uint32_t generation = w.slots[2].generation;
  release_slot(w, b);
  release_slot(w, a);
  for (std::uint32_t i = 4; i < kSlotsMax; ++i) {
    REQUIRE(value(create_slot(w, kMainProcess)) == i);
  }
  CHECK(value(create_slot(w, kMainProcess)) == 3);
  CHECK(value(create_slot(w, kMainProcess)) == 2);
  CHECK(w.slots[2].generation == generation + 1);
  CHECK(create_slot(w, kMainProcess) == kNoSlot);
  CHECK(w.processes[kMainProcess].slots == kSlotsMax - 1);
  release_slot(w, Slot{77});
  CHECK(value(create_slot(w, kMainProcess)) == 77);
}

TEST_CASE("a killed slot leaves every queue and is not reused before its release",
          "[turns][slots]") {
  World world;
  world.hold();
  Layout& w = world.w;
  const Slot a = create_slot(w, kMainProcess);
  CHECK(w.scheduler.runnable == 2);
  kill_slot(w, a);
  CHECK(w.scheduler.runnable == 1);
  CHECK(w.slots[value(a)].state == SlotState::kDead);
  CHECK_FALSE(wake(w, a, WakeReason::kSignalled));
  put_turn(w, world.main, kOp, 0, true);
  CHECK(has_turn(w, world.main));
}

TEST_CASE("the schedule hash depends on operations, results and slots", "[turns][hash]") {
  const auto hash = [](Operation op, std::uint64_t result, int turns) {
    World world;
    world.hold();
    for (int i = 0; i < turns; ++i) put_turn(world.w, world.main, op, result, false);
    return world.w.scheduler.hash;
  };
  CHECK(hash(1, 0, 3) == hash(1, 0, 3));
  CHECK(hash(1, 0, 3) != hash(2, 0, 3));
  CHECK(hash(1, 0, 3) != hash(1, 1, 3));
  CHECK(hash(1, 0, 3) != hash(1, 0, 4));
}

TEST_CASE("prefixes of the hash are stored once per period", "[turns][hash]") {
  World world;
  world.hold();
  for (std::uint64_t i = 0; i < kHashPeriod; ++i) {
    put_turn(world.w, world.main, kOp, i, false);
  }
  CHECK(world.w.history[1].turn == kHashPeriod);
  CHECK(world.w.history[1].hash == world.w.scheduler.hash);
}

TEST_CASE("assertions: a thread without the turn cannot act, and a turn needs a grant", "[turns]") {
  CHECK(in_child([] {
          World world;
          world.hold();
          const Slot other = create_slot(world.w, kMainProcess);
          put_turn(world.w, other, kOp, 0, false);  // DMT-T1
        }) == 128 + SIGABRT);
  CHECK(in_child([] {
          World world;
          world.hold();
          world.w.scheduler.grant_left = 0;
          put_turn(world.w, world.main, kOp, 0, false);  // DMT-T4
        }) == 128 + SIGABRT);
  CHECK(in_child([] {
          World world;
          world.hold();
          put_turn(world.w, world.main, kOp, 0, false);
        }) == 0);
}

TEST_CASE("threads that start and end keep the rotation going", "[turns][slots]") {
  World world;
  int ended = 0;
  world.run_as(world.main, [&](Slot me) {
    for (int i = 0; i < 100; ++i) {
      get_turn(world.w, me);
      const Slot child = create_slot(world.w, kMainProcess);
      std::thread thread([&, child] {
        get_turn(world.w, child);
        ++ended;
        signal(world.w, world.w.slots[value(child)].exit_object, kAll);
        release_slot(world.w, child);
        leave(world.w, child);
      });
      wait(world.w, me, world.w.slots[value(child)].exit_object, kNoDeadline, kOp);
      put_turn(world.w, me, kOp, 0, false);
      thread.join();
    }
    finish(world.w, me);
  });
  world.start(100);
  world.drive();
  CHECK(ended == 100);
}

TEST_CASE("the last turns are recorded with their objects", "[turns][trace]") {
  World world;
  world.hold();
  note_object(world.w, 77);
  note_caller(world.w, 0x1234);
  put_turn(world.w, world.main, 7, 9, false);
  signal(world.w, 55, kAll);
  put_turn(world.w, world.main, 8, 0, false);
  const TurnRecord& first = world.w.turns[1];
  CHECK(first.result == 9);
  CHECK(first.object == 77);
  CHECK(first.caller == 0x1234);
  CHECK(first.operation == 7);
  CHECK(first.slot == value(world.main));
  CHECK(first.process == kMainProcess);
  CHECK(world.w.turns[2].object == 55);
  CHECK(world.w.turns[2].caller == 0);
  world.bubble(kPlenty);
  world.admit();
  CHECK(world.w.turns[3].object == 0);
  CHECK(world.outputs().empty());  // without tracing
}

TEST_CASE("a trace contains every turn once, in order", "[turns][trace]") {
  Options options;
  options.trace = true;
  World world(options);
  world.hold();
  std::uint64_t next = 0;
  for (int round = 0; round < 20; ++round) {
    for (std::uint64_t i = 0; i < kTurnsPerRecord; ++i) {
      put_turn(world.w, world.main, 3, world.w.scheduler.clock + 1, false);
    }
    for (const Output& o : world.outputs()) {
      REQUIRE(o.header.type == OutputType::kTurns);
      REQUIRE(o.header.conn == next);
      REQUIRE(o.bytes.size() == kTurnsPerRecord * sizeof(TurnRecord));
      for (std::uint64_t i = 0; i < kTurnsPerRecord; ++i, ++next) {
        TurnRecord turn;
        std::memcpy(&turn, o.bytes.data() + i * sizeof turn, sizeof turn);
        REQUIRE(turn.result == next);  // turn 0 does not exist and is all zeros
      }
    }
  }
  CHECK(next == 20 * kTurnsPerRecord);
}
