// SPDX-License-Identifier: Apache-2.0
// GOAL    Quiescent means that every thread of the server sleeps until it gets the turn. A thread
//         that slept during a restore is notified of it before it continues.
// METHOD  Real threads as slots in each of the ways to sleep and not to sleep. The test is the node
//         and takes the turn when it is free.
// CHECKS  DMT-R2, every reason and its text, the handler of restores.
#include "dmt/quiescence.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "dmt/base/futex.h"
#include "dmt/files.h"
#include "dmt/hand_off.h"
#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 7;
constexpr std::uint64_t kObject = 77;
constexpr std::int64_t kLate = kOrigin + 1'000'000'000;

// The node's part: takes the free turn, and returns it.
void take_turn(World& world) {
  world.until("the turn is unowned", [&] {
    std::uint32_t idle = kHolderIdle;
    return world.w.scheduler.holder.compare_exchange_strong(idle, value(kNodeSlot));
  });
}
void return_turn(World& world) { world.w.scheduler.holder.store(kHolderIdle); }

std::string text_of(const World& world, const Blocker& r) {
  char text[120];
  describe(world.w, r, text);
  return text;
}

// Returns what the node finds with the turn, after the threads had time to become quiescent.
Blocker at_last(World& world, BlockerKind wanted) {
  take_turn(world);
  world.until("the expected blocker", [&] { return find_blocker(world.w).why == wanted; });
  const Blocker r = find_blocker(world.w);
  return_turn(world);
  return r;
}

// The main process has begun; its first thread waits until `stop` is signalled.
struct Server : World {
  explicit Server(const Options& o = {}) : World(o) {
    w.processes[kMainProcess].pid = 40;
    w.slots[value(main)].thread_id = 40;
    run_as(main, [this](Slot me) { wait_and_end(me, kObject, kNoDeadline); });
  }
  void wait_and_end(Slot me, std::uint64_t object, std::int64_t deadline) {
    get_turn(w, me);
    wait(w, me, object, deadline, kOp);
    finish(w, me);
  }
  // All threads continue and end.
  void end() {
    take_turn(*this);
    signal(w, kObject, kAll);
    bubble(kPlenty);
    return_turn(*this);
    drive();
  }
};

// A quiescent server with one more thread, which increments `on` when it continues.
void rest_with_another(Server& s, std::atomic<int>& on) {
  s.spawn([&](Slot me) {
    get_turn(s.w, me);
    wait(s.w, me, kObject, kNoDeadline, kOp);
    on.store(1);
    finish(s.w, me);
  });
  s.start(kPlenty);
  admit_from_node(s.w);
  at_last(s, BlockerKind::kNothing);
}

ProcessRecord& add_process(World& world, std::uint16_t process, Slot slot, std::uint32_t pid) {
  ProcessRecord& p = world.w.processes[process];
  p.pid = pid;
  world.w.slots[value(slot)].thread_id = pid;
  world.w.slots[value(slot)].parked.store(1);
  return p;
}

}  // namespace

TEST_CASE("a thread that sleeps for the turn is quiescent, whatever it waits for", "[rest]") {
  const Mode mode = GENERATE(Mode::kSerial, Mode::kParallel);
  const std::uint32_t spin = GENERATE(0u, 300u);
  Server s({.mode = mode, .spin = spin});
  s.spawn([&](Slot me) { s.wait_and_end(me, 0, kLate); });
  s.spawn([&](Slot me) { s.wait_and_end(me, kObject, kLate); });
  s.spawn([&](Slot me) {
    get_turn(s.w, me);
    wait_at_soft_barrier(s.w, me, kObject, kLate, kOp);
    finish(s.w, me);
  });
  s.start(3);  // so that the last thread waits for its turn
  admit_from_node(s.w);
  CHECK(at_last(s, BlockerKind::kNothing).why == BlockerKind::kNothing);
  CHECK(s.w.scheduler.runnable == 1);
  s.bubble(kPlenty);
  admit_from_node(s.w);
  CHECK(at_last(s, BlockerKind::kNothing).why == BlockerKind::kNothing);
  CHECK(s.w.scheduler.runnable == 0);
  s.end();
}

TEST_CASE("no thread stops being quiescent while the node has the turn", "[rest]") {
  Server s;
  std::atomic<int> on{0};
  rest_with_another(s, on);
  take_turn(s);
  s.bubble(kPlenty);
  for (int i = 0; i < 200; ++i) {
    for (std::uint32_t slot = 1; slot < s.w.scheduler.slots_used; ++slot) {
      futex_wake(&s.w.slots[slot].parked, 1);  // as a signal or a dump would end the sleep
    }
    CHECK_FALSE(admit_from_node(s.w));
    REQUIRE(is_quiescent(s.w));
  }
  CHECK(on.load() == 0);
  return_turn(s);
  s.end();
  CHECK(on.load() == 1);
}

TEST_CASE("on a fenced replica the node keeps the turn and continues", "[rest]") {
  const bool holds = GENERATE(true, false);
  CHECK(in_child([holds] {
          Server s;
          std::atomic<int> on{0};
          rest_with_another(s, on);
          if (holds) take_turn(s);
          s.bubble(kPlenty);
          s.w.scheduler.fenced.store(1);
          if (holds) {
            release_turn(s.w);
          } else {
            admit_from_node(s.w);
          }
          ::_exit(has_turn(s.w, kNodeSlot) && on.load() == 0 ? 0 : 1);
        }) == 0);
}

TEST_CASE("bytes of a connection that is not accepted prevent quiescence", "[rest]") {
  Server s;
  std::atomic<int> on{0};
  rest_with_another(s, on);
  take_turn(s);
  const std::uint32_t listener = create_file(s.w, s.main, FileKind::kUnixListener);
  const std::uint32_t connection = create_file(s.w, s.main, FileKind::kUnixStream);
  s.w.files[listener].listener.head = s.w.files[listener].listener.tail = connection;
  CHECK(is_quiescent(s.w));
  s.w.files[connection].stream.bytes = 1;
  const Blocker r = find_blocker(s.w);
  CHECK(r.why == BlockerKind::kUnaccepted);
  CHECK(text_of(s, r) ==
        "a connection between processes of the server holds bytes and is not accepted yet");
  s.w.files[listener].listener.head = 0;
  CHECK(is_quiescent(s.w));
  return_turn(s);
  s.end();
}

TEST_CASE("a thread in the application's code is not quiescent", "[rest]") {
  // In serial mode it would have the turn.
  Server s({.mode = Mode::kParallel});
  std::atomic<bool> computes{true};
  const Slot slot = s.spawn([&](Slot me) {
    get_turn(s.w, me);
    put_turn(s.w, me, kOp, 0, true);
    while (computes.load()) std::this_thread::yield();
    finish(s.w, me);
  });
  s.w.slots[value(slot)].thread_id = 41;
  s.start(2);
  admit_from_node(s.w);
  take_turn(s);
  s.until("the others sleep", [&] { return find_blocker(s.w).slot == value(slot); });
  const Blocker r = find_blocker(s.w);
  CHECK(r.why == BlockerKind::kAwake);
  CHECK(text_of(s, r) ==
        "thread 41 (slot 2) of process 40 runs; its last operation was "
        "operation 7");
  std::memcpy(s.w.operation_names, "a\0b\0c\0d\0e\0f\0g\0read\0", 20);
  CHECK(text_of(s, r) == "thread 41 (slot 2) of process 40 runs; its last operation was read");
  computes.store(false);
  s.until("it waits for the turn", [&] { return is_quiescent(s.w); });
  CHECK(text_of(s, find_blocker(s.w)) == "quiescent");
  return_turn(s);
  s.bubble(kPlenty);
  s.end();
}

TEST_CASE("a thread in a call that the others do not wait for is not quiescent", "[rest]") {
  Server s({.mode = Mode::kSerial});
  std::atomic<bool> flushes{true};
  const Slot slot = s.spawn([&](Slot me) {
    get_turn(s.w, me);
    yield_without_turn(s.w, me, kOp);  // fsync
    while (flushes.load()) std::this_thread::yield();
    finish(s.w, me);
  });
  s.start(2);
  admit_from_node(s.w);
  take_turn(s);
  s.until("the others sleep", [&] { return find_blocker(s.w).slot == value(slot); });
  CHECK(find_blocker(s.w).why == BlockerKind::kAwake);
  flushes.store(false);
  s.until("it is back", [&] { return is_quiescent(s.w); });
  return_turn(s);
  s.bubble(kPlenty);
  s.end();
}

TEST_CASE("a thread that left by agreement is quiescent while it waits to rejoin", "[rest]") {
  const Mode mode = GENERATE(Mode::kSerial, Mode::kParallel);
  Server s({.mode = mode});
  std::atomic<bool> away{true};
  const Slot slot = s.spawn([&](Slot me) {
    get_turn(s.w, me);
    detach(s.w, me, kOp);
    while (away.load()) std::this_thread::yield();
    finish(s.w, me);
  });
  s.w.slots[value(slot)].thread_id = 41;
  s.start(kPlenty);
  admit_from_node(s.w);
  const Blocker r = at_last(s, BlockerKind::kDetachedThread);
  CHECK(r.slot == value(slot));
  CHECK(text_of(s, r) ==
        "thread 41 (slot 2) of process 40 is detached; its last operation was operation 7");
  away.store(false);
  at_last(s, BlockerKind::kNothing);
  const AttachBody body{value(slot), 1};
  s.push(EntryType::kAttach, kPlenty, &body, sizeof body);
  s.end();
}

TEST_CASE("a slot whose thread has not arrived is not quiescent", "[rest]") {
  Server s;
  s.start(kPlenty);
  admit_from_node(s.w);
  at_last(s, BlockerKind::kNothing);
  take_turn(s);
  Slot slot = create_slot(s.w, kMainProcess);
  CHECK(find_blocker(s.w).slot == value(slot));
  CHECK(find_blocker(s.w).why == BlockerKind::kAwake);
  CHECK(text_of(s, find_blocker(s.w)) == "thread 0 (slot 2) of process 40 runs");
  // Its thread was killed while asleep, and all other slots were used since then.
  s.w.slots[value(slot)].parked.store(1);
  const Slot again = slot;
  do {
    release_slot(s.w, slot);
    slot = create_slot(s.w, kMainProcess);
  } while (slot != again);
  CHECK(find_blocker(s.w).why == BlockerKind::kAwake);
  release_slot(s.w, slot);
  CHECK(is_quiescent(s.w));
  return_turn(s);
  s.end();
}

TEST_CASE("processes that begin, that exec, or that cannot be saved are not quiescent", "[rest]") {
  Server s;
  s.start(kPlenty);
  admit_from_node(s.w);
  at_last(s, BlockerKind::kNothing);
  take_turn(s);
  const auto has_blocker = [&](BlockerKind why) {
    const Blocker r = find_blocker(s.w);
    CHECK(r.why == why);
    return text_of(s, r);
  };
  const Child child = create_process(s.w, kMainProcess);
  CHECK(has_blocker(BlockerKind::kAwake) ==
        "thread 0 (slot 2) of a process that has not started (record 2) runs");
  ProcessRecord& p = add_process(s, child.process, child.slot, 0);
  CHECK(has_blocker(BlockerKind::kBeginning) ==
        "a process that has not started (record 2) is starting");
  p.pid = 50;  // from its parent
  CHECK(has_blocker(BlockerKind::kBeginning) == "process 50 is starting");
  s.w.slots[value(child.slot)].thread_id = 50;
  CHECK(is_quiescent(s.w));
  p.exec_pending = true;
  CHECK(has_blocker(BlockerKind::kBeginning) == "process 50 is starting another program");
  p.exec_pending = false;
  const Slot second = create_slot(s.w, child.process);
  s.w.slots[value(second)].thread_id = 51;
  s.w.slots[value(second)].parked.store(1);
  CHECK(is_quiescent(s.w));
  release_slot(s.w, child.slot);
  CHECK(has_blocker(BlockerKind::kFirstThreadEnded) ==
        "process 50 has other threads but its first one has ended: such a process cannot be saved");
  end_process(s.w, child.process, 0);
  CHECK(is_quiescent(s.w));  // the rest of it belongs to the kernel
  return_turn(s);
  s.end();
}

TEST_CASE("a replica is not quiescent if the node lacks the turn, if it failed, or if it ended",
          "[rest]") {
  World world;
  CHECK(find_blocker(world.w).why == BlockerKind::kTurn);
  CHECK(text_of(world, find_blocker(world.w)) == "a thread of the server has the turn");
  take_turn(world);
  world.w.scheduler.ended = true;
  CHECK(text_of(world, find_blocker(world.w)) == "the server has ended");
  world.w.scheduler.fenced.store(1);
  CHECK(text_of(world, find_blocker(world.w)) == "the replica is fenced");
  char tiny[4];
  describe(world.w, find_blocker(world.w), tiny);
  CHECK(std::string(tiny) == "the");
}

namespace {

struct BlockerReport {
  std::atomic<int> times{0};
  std::atomic<std::uint32_t> restores{0};
};
thread_local BlockerReport* blocker_report = nullptr;
std::atomic<int> reported_in_all{0};

void on_restore(std::uint32_t restores) noexcept {
  reported_in_all.fetch_add(1);
  if (blocker_report == nullptr) return;
  blocker_report->times.fetch_add(1);
  blocker_report->restores.store(restores);
}

}  // namespace

TEST_CASE("a thread that slept during a restore is notified once, before it continues", "[rest]") {
  const Mode mode = GENERATE(Mode::kSerial, Mode::kParallel);
  constexpr int kThreads = 4;
  BlockerReport of[kThreads];
  Server s({.mode = mode});
  std::vector<std::string> wrong;  // with the turn
  const auto expect = [&](int name, int times) {
    if (of[name].times.load() != times) wrong.push_back("thread " + std::to_string(name));
  };
  reported_in_all.store(0);
  set_restore_handler(on_restore);
  std::atomic<bool> away{true};
  Slot detached = kNoSlot;
  const auto late = [](int round) { return kOrigin + round * 1'000'000'000; };
  for (int name = 0; name < kThreads; ++name) {
    const Slot slot = s.spawn([&, name](Slot me) {
      blocker_report = &of[name];
      for (int round = 1; round <= 2; ++round) {
        get_turn(s.w, me);
        expect(name, round - 1);
        if (name == 0) {
          detach(s.w, me, kOp);
          while (away.load()) std::this_thread::yield();
          get_turn(s.w, me);
        } else {
          wait(s.w, me, name == 1 ? kObject + 2 : 0, name == 1 ? kNoDeadline : late(round), kOp);
        }
        expect(name, round);
        put_turn(s.w, me, kOp, 0, false);
        for (int i = 0; i < 3; ++i) {
          get_turn(s.w, me);
          expect(name, round);
          put_turn(s.w, me, kOp, 0, true);
        }
        get_turn(s.w, me);
        wait(s.w, me, kObject + 1, kNoDeadline, kOp);
        put_turn(s.w, me, kOp, 0, false);
        away.store(true);
      }
      finish(s.w, me);
    });
    if (name == 0) detached = slot;
  }
  s.start(kPlenty);
  admit_from_node(s.w);
  for (std::uint32_t round = 1; round <= 2; ++round) {
    at_last(s, BlockerKind::kDetachedThread);
    away.store(false);
    at_last(s, BlockerKind::kNothing);
    take_turn(s);
    announce_restore(s.w);
    signal(s.w, kObject + 2, kAll);
    const AttachBody body{value(detached), round};
    s.push(EntryType::kAttach, kPlenty, &body, sizeof body);
    s.time(late(static_cast<int>(round)) - kOrigin, kPlenty);
    return_turn(s);
    admit_from_node(s.w);
    at_last(s, BlockerKind::kNothing);
    for (const BlockerReport& t : of) CHECK(t.restores.load() == round);
    take_turn(s);
    signal(s.w, kObject + 1, kAll);
    s.bubble(kPlenty);
    return_turn(s);
    admit_from_node(s.w);
  }
  s.end();
  CHECK(wrong.empty());
  CHECK(reported_in_all.load() == 2 * kThreads + 1);  // and the main thread, once
  set_restore_handler(nullptr);
}
