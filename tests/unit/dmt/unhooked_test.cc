// SPDX-License-Identifier: Apache-2.0
// GOAL    Calls that bypass the library are counted exactly and named once. Futex waiters keep
//         their order across wake-ups with bits and requeueing.
// METHOD  Threads that count concurrently; slots that wait while the main slot signals.
// CHECKS  count_unhooked, note_stopped; signal_bits, requeue (DMT-T3, DMT-T5).
#include "dmt/unhooked.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <thread>

#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 7;
constexpr std::uint64_t kFrom = 77, kTo = 78;

UnhookedCall call(int number, std::uint64_t offset) {
  UnhookedCall c{};
  c.number = number;
  c.outcome = Outcome::kPassed;
  c.offset = offset;
  std::snprintf(c.name, sizeof c.name, "call%d", number);
  std::snprintf(c.object, sizeof c.object, "/usr/lib/object.so");
  return c;
}

// Three threads wait for kFrom with the bits 1, 2 and 3, in this order; then the main slot calls
// `act` at its turn. Returns the threads in the order in which they continued, with the notes of
// the main slot in between.
std::vector<int> wake_with(const std::function<void(Layout&, std::vector<int>&)>& act) {
  World world;
  std::vector<int> trace;
  int waiting = 0;
  for (int t = 1; t <= 3; ++t) {
    world.spawn([&world, &trace, &waiting, t](Slot me) {
      get_turn(world.w, me);
      world.w.slots[value(me)].wait_bits = static_cast<std::uint32_t>(t);
      ++waiting;
      wait(world.w, me, kFrom, kNoDeadline, kOp);
      trace.push_back(t);
      release_slot(world.w, me);
      leave(world.w, me);
    });
  }
  world.run_as(world.main, [&](Slot me) {
    get_turn(world.w, me);
    while (waiting < 3) {
      put_turn(world.w, me, kOp, 0, true);
      get_turn(world.w, me);
    }
    act(world.w, trace);
    release_slot(world.w, me);
    leave(world.w, me);
  });
  world.start(kPlenty);
  world.drive();
  return trace;
}

}  // namespace

TEST_CASE("unhooked calls: the same place has one record, and each call counts", "[unhooked]") {
  World world;
  CHECK(unhooked_record(world.w, 0) == nullptr);
  const std::uint32_t first = count_unhooked(world.w, call(1, 0x10)).record;
  CHECK(count_unhooked(world.w, call(1, 0x20)).record != first);
  CHECK(count_unhooked(world.w, call(2, 0x10)).record != first);
  CHECK(count_unhooked(world.w, call(1, 0x10)).record == first);
  count_unhooked_again(world.w, first);
  CHECK(world.w.unhooked.total == 5);
  REQUIRE(unhooked_record(world.w, first) != nullptr);
  CHECK(unhooked_record(world.w, first)->count == 3);
  CHECK(std::string(unhooked_record(world.w, first)->call.name) == "call1");
}

TEST_CASE("unhooked calls: places beyond the last record are counted but not named", "[unhooked]") {
  World world;
  for (std::uint32_t i = 0; i < kUnhookedMax; ++i) {
    CHECK(count_unhooked(world.w, call(1, i)).record == i);
  }
  CHECK(count_unhooked(world.w, call(1, kUnhookedMax)).record == kNoRecord);
  count_unhooked_again(world.w, kNoRecord);
  CHECK(world.w.unhooked.total == kUnhookedMax + 2);
}

TEST_CASE("unhooked calls: threads that count concurrently lose none", "[unhooked]") {
  constexpr int kThreads = 4, kCalls = 2000;
  World world;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&world] {
      for (int i = 0; i < kCalls; ++i) {
        count_unhooked(world.w, call(i % 5, 0));
      }
    });
  }
  for (auto& t : threads) t.join();
  std::uint64_t named = 0;
  for (std::uint32_t i = 0; i < kUnhookedMax; ++i) {
    if (const auto* r = unhooked_record(world.w, i)) named += r->count;
  }
  CHECK(world.w.unhooked.total == kThreads * kCalls);
  CHECK(named == kThreads * kCalls);
}

TEST_CASE("unhooked calls: the first call that stops a replica is the reason", "[unhooked]") {
  World world;
  const std::uint32_t first = count_unhooked(world.w, call(1, 0)).record;
  const std::uint32_t second = count_unhooked(world.w, call(2, 0)).record;
  CHECK(world.w.unhooked.stopped == 0);
  note_stopped(world.w, second);
  note_stopped(world.w, first);
  CHECK(world.w.unhooked.stopped == second + 1);
}

TEST_CASE("wake-ups with bits skip waiters that share no bit", "[unhooked]") {
  const auto trace = wake_with([](Layout& w, std::vector<int>& t) {
    t.push_back(static_cast<int>(signal_bits(w, kFrom, kAll, 4)) * 10);
    t.push_back(static_cast<int>(signal_bits(w, kFrom, 1, 2)) * 10);
    t.push_back(static_cast<int>(signal_bits(w, kFrom, kAll, 3)) * 10);
  });
  CHECK(trace == std::vector<int>{0, 10, 20, 2, 1, 3});
}

TEST_CASE("requeued waiters keep their order and go behind the present waiters", "[unhooked]") {
  const auto trace = wake_with([](Layout& w, std::vector<int>& t) {
    t.push_back(static_cast<int>(requeue(w, kFrom, kTo, 2)) * 10);
    t.push_back(static_cast<int>(requeue(w, kTo, kTo, kAll)) * 10);
    t.push_back(static_cast<int>(signal(w, kTo, 1)) * 10);
    t.push_back(static_cast<int>(signal(w, kFrom, kAll)) * 10);
    t.push_back(static_cast<int>(requeue(w, kTo, kFrom, kAll)) * 10);
    t.push_back(static_cast<int>(signal(w, kTo, kAll)) * 10);
    t.push_back(static_cast<int>(signal(w, kFrom, kAll)) * 10);
  });
  CHECK(trace == std::vector<int>{20, 0, 10, 10, 10, 0, 10, 1, 3, 2});
}

TEST_CASE("requeueing within one wait bucket moves each waiter once", "[unhooked]") {
  // The objects share a bucket: the moved waiters go behind the last one to look at.
  constexpr std::uint64_t kSameBucket = kFrom + kWaitBuckets;
  const auto trace = wake_with([](Layout& w, std::vector<int>& t) {
    t.push_back(static_cast<int>(requeue(w, kFrom, kSameBucket, kAll)) * 10);
    t.push_back(static_cast<int>(signal(w, kSameBucket, kAll)) * 10);
  });
  CHECK(trace == std::vector<int>{30, 30, 1, 2, 3});
}
