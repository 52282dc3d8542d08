// SPDX-License-Identifier: Apache-2.0
// GOAL    Agreed detachment: a thread leaves the schedule at one turn and rejoins at one entry,
//         however long it was away. A soft barrier ends when no other thread can reach it.
// METHOD  Real threads as slots. The test is the node and decides whether ATTACH is in the log
//         before or after the thread is back.
// CHECKS  Order and hash do not depend on the time away; quiescence; ATTACH twice or for no slot.
#include <catch2/catch.hpp>
#include <csignal>

#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 7;

struct Ran {
  std::vector<int> trace;
  std::uint64_t hash;
};

// Slot A leaves, B and C continue. ATTACH is entry 3, in the log before or after A is back.
Ran run(Mode mode, bool early) {
  World world({.mode = mode});
  Layout& w = world.w;
  std::vector<int> trace;
  std::atomic<bool> back{false};
  std::atomic<int> others{0};
  const Slot a = world.spawn([&](Slot me) {
    get_turn(w, me);
    trace.push_back(1);
    detach(w, me, kOp);
    while (!back.load()) std::this_thread::yield();  // no thread waits for this
    get_turn(w, me);
    trace.push_back(1);
    put_turn(w, me, kOp, 0, false);
    finish(w, me);
  });
  for (int name = 2; name <= 3; ++name) {
    world.spawn([&, name](Slot me) {
      for (int i = 0; i < 3; ++i) {
        get_turn(w, me);
        trace.push_back(name);
        put_turn(w, me, kOp, 0, false);
      }
      get_turn(w, me);
      others.fetch_add(1);
      // Until the test lets it end: all threads except A wait.
      wait(w, me, 77, kNoDeadline, kOp);
      put_turn(w, me, kOp, 0, false);
      finish(w, me);
    });
  }
  world.run_as(world.main, [&w](Slot me) { finish(w, me); });
  world.start(kPlenty);
  const AttachBody body{value(a), 1};
  bool pushed = false, woken = false;
  world.drive([&](bool idle) {
    if (others.load() == 2 && !pushed && idle) {
      CHECK(w.slots[value(a)].state == SlotState::kDetached);
      CHECK(w.scheduler.runnable == 0);  // quiescent although A computes
      if (!early) {
        back.store(true);
        world.until("A wants to rejoin", [&] { return w.slots[value(a)].arrived.load() == 1; });
      }
      world.push(EntryType::kAttach, kPlenty, &body, sizeof body);
      world.push(EntryType::kAttach, kPlenty, &body, sizeof body);  // again, by a new leader
      pushed = true;
    }
    if (!pushed) return;
    if (!back.load()) {
      admit_from_node(w);
      CHECK(value(w.scheduler.admitted.index) == 1);  // the log waits for A
      CHECK(w.scheduler.holder.load() == kHolderIdle);
      back.store(true);
    }
    if (!woken && value(w.scheduler.admitted.index) == 3 && trace.size() == 8) {
      woken = true;
      const SignalBody nothing{1, 99};
      std::uint32_t none = kHolderIdle;
      world.until("the turn is unowned", [&] {
        none = kHolderIdle;
        return w.scheduler.holder.compare_exchange_strong(none, value(kNodeSlot));
      });
      signal(w, 77, kAll);
      // Not earlier: A, which leaves, would admit it and find no thread to pass the turn to.
      world.push(EntryType::kSignal, kPlenty, &nothing, sizeof nothing);
      w.scheduler.holder.store(kHolderIdle);
    }
  });
  return {trace, w.scheduler.hash};
}

}  // namespace

TEST_CASE("a thread that leaves the schedule by agreement rejoins at one entry", "[detach]") {
  const Mode mode = GENERATE(Mode::kSerial, Mode::kParallel);
  const Ran late = run(mode, false), early = run(mode, true);
  CHECK(late.trace == std::vector<int>{1, 2, 3, 2, 3, 2, 3, 1});
  CHECK(early.trace == late.trace);
  CHECK(early.hash == late.hash);
}

TEST_CASE("an ATTACH for a slot that did not leave has no effect", "[detach]") {
  World world;
  world.hold();
  for (const AttachBody body : {AttachBody{value(world.main), 0}, AttachBody{9, 1},
                                AttachBody{kSlotsMax, 1}, AttachBody{UINT32_MAX, UINT32_MAX}}) {
    world.push(EntryType::kAttach, kPlenty, &body, sizeof body);
  }
  world.admit();
  CHECK(value(world.w.scheduler.admitted.index) == world.last_index());
  CHECK(world.w.scheduler.runnable == 1);
}

TEST_CASE("a signal for a thread that is away stays pending until it is back", "[detach]") {
  World world;
  world.hold();
  Layout& w = world.w;
  const Slot other = create_slot(w, kMainProcess);
  w.processes[kMainProcess].dispositions[SIGUSR1] = Disposition::kHandler;
  w.slots[value(other)].state = SlotState::kDetached;
  CHECK(send_signal_to_slot(w, other, SIGUSR1));
  CHECK(w.slots[value(other)].pending_signals == 1ULL << (SIGUSR1 - 1));
  w.slots[value(other)].state = SlotState::kRunnable;
  CHECK(take_signal(w, other) == SIGUSR1);
}

TEST_CASE("a slot that is released at a soft barrier is no longer counted there", "[detach]") {
  World world;
  world.hold();
  Layout& w = world.w;
  const Slot other = create_slot(w, kMainProcess);
  w.slots[value(other)].at_soft_barrier = 1;  // as by wait_at_soft_barrier
  w.scheduler.at_soft_barrier.store(1);
  release_slot(w, other);  // exec by another thread
  CHECK(w.scheduler.at_soft_barrier.load() == 0);
}

TEST_CASE("a soft barrier ends at a TIME entry that finds no runnable thread", "[detach]") {
  World world;
  Layout& w = world.w;
  std::atomic<int> ended{0};
  std::vector<WakeReason> reasons;
  for (int i = 0; i < 3; ++i) {
    world.spawn([&](Slot me) {
      get_turn(w, me);
      reasons.push_back(wait_at_soft_barrier(w, me, 55, kOrigin + 1'000'000'000, kOp));
      put_turn(w, me, kOp, 0, false);
      ended.fetch_add(1);
      finish(w, me);
    });
  }
  world.run_as(world.main, [&w](Slot me) { finish(w, me); });
  world.start(kPlenty);
  bool timed = false;
  world.drive([&](bool idle) {
    if (!idle || w.scheduler.at_soft_barrier.load() != 3 || timed) return;
    timed = true;
    CHECK(ended.load() == 0);
    world.time(1, kPlenty);  // long before the deadline
  });
  CHECK(timed);
  CHECK(reasons == std::vector<WakeReason>(3, WakeReason::kTimeout));
  CHECK(w.scheduler.at_soft_barrier.load() == 0);
}
