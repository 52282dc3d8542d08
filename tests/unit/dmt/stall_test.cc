// SPDX-License-Identifier: Apache-2.0
// GOAL    A stalled thread gives way at the same clock on all replicas.
// METHOD  Real threads as slots that probe themselves. The test is the node of a leader, then the
//         node of a follower, which gets the leader's orders.
// CHECKS  DMT-W1..W3, which threads count as stalled, the leader's clock limit, the rest of a
//         grant, releasing a held thread.
#include <catch2/catch.hpp>
#include <csignal>

#include "dmt/processes.h"
#include "dmt/slices.h"
#include "dmt/stall.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr Operation kOp = 7;
constexpr std::uint64_t kLoop = 0x4000;  // the address at which the threads of these tests spin

Options spinning(Options o) {
  o.stall_rule = StallRule::kSpins;
  return o;
}

void operate(Layout& w, Slot me) {
  get_turn(w, me);
  put_turn(w, me, kOp, 0, false);
}

// A thread's own probes, instead of an interrupt. From one probe to the next, `step` of time and
// `own_cpu_ns` of processor time pass.
class Prober {
 public:
  Prober(Layout& w, Slot me, std::int64_t own_cpu_ns = 0)
      : w_(w), me_(me), own_cpu_ns_(own_cpu_ns) {}
  bool at(std::uint64_t instruction, std::int64_t cpu_step = 1'000'000,
          std::int64_t physical_step = 1'000'000, bool moved = true) {
    if (moved) ++registers_;
    return probe(instruction, cpu_step, physical_step);
  }
  bool asleep_at(std::uint64_t instruction, std::int64_t physical_step) {
    ++sleeps_;
    return probe(instruction, 0, physical_step);
  }

 private:
  bool probe(std::uint64_t instruction, std::int64_t cpu_step, std::int64_t physical_step) {
    cpu_ += cpu_step;
    physical_ += physical_step;
    const bool yielded =
        probed(w_, me_, {instruction, cpu_, physical_, registers_, sleeps_}, memory_);
    cpu_ += own_cpu_ns_;
    memory_.released_cpu_ns = cpu_;
    memory_.released_sleeps = sleeps_;
    return yielded;
  }

  Layout& w_;
  Slot me_;
  std::int64_t own_cpu_ns_;
  std::int64_t cpu_ = 0, physical_ = 0, sleeps_ = 0;
  std::uint64_t registers_ = 0;
  ProbeMemory memory_{};
};

struct Ran {
  std::uint64_t hash;
  std::vector<PreemptBody> orders;
  int rounds;
};

// Two threads wait for each other in loops without operations. Without `orders` this is the
// leader's replica, which finds out when to preempt. Otherwise it is a follower's, which gets the
// leader's clock step by step. `pestered`: a thread that gets the turn again is probed before it
// can look at anything.
Ran ping_pong(Options options, const std::vector<PreemptBody>* orders, bool pestered = false) {
  World world(spinning(options));
  Layout& w = world.w;
  std::atomic<int> ping{0}, pong{0};
  constexpr int kRounds = 6;
  const auto side = [&w, pestered](std::atomic<int>& mine, std::atomic<int>& theirs, int lead) {
    return [&w, &mine, &theirs, lead, pestered](Slot me) {
      Prober prober(w, me);
      for (int i = 1; i <= kRounds; ++i) {
        operate(w, me);
        if (lead != 0) mine.store(i);
        for (std::uint64_t n = 0; theirs.load() < i; ++n) {
          if (!prober.at(kLoop + 4 * (n % 3)) || !pestered) continue;
          for (int k = 0; k < 4; ++k) prober.at(kLoop, kLookNs - 1);
          for (int k = 0; k < 4; ++k) prober.at(kLoop, kLookNs, kLookNs, false);
        }
        mine.store(i);
      }
      finish(w, me);
    };
  };
  world.spawn(side(ping, pong, 1));
  world.spawn(side(pong, ping, 0));
  world.run_as(world.main, [&w](Slot me) { finish(w, me); });
  w.scheduler.leading.store(orders == nullptr ? 1 : 0);
  if (orders != nullptr) set_leader_clock_limit(w, 1);
  world.start(kPlenty);
  std::vector<PreemptBody> taken;
  const auto lead = [&](bool) {
    PreemptBody body{};
    if (!has_held_thread(w, body) || preempt_requests_obeyed(w) != taken.size()) return;
    taken.push_back(body);
    request_preemption(w, body);
    world.until("the order is obeyed", [&] { return preempt_requests_obeyed(w) == taken.size(); });
  };
  const auto follow = [&](bool) {
    const std::size_t obeyed = preempt_requests_obeyed(w);
    if (obeyed == orders->size()) return set_leader_clock_limit(w, kNoClock);
    const PreemptBody& next = (*orders)[obeyed];
    if (w.scheduler.preempt_clock.load() == next.clock) return;
    if (leader_clock_limit(w) < next.clock)
      return set_leader_clock_limit(w, leader_clock_limit(w) + 1);
    request_preemption(w, next);
  };
  if (orders == nullptr) {
    world.drive(lead);
  } else {
    world.drive(follow);
  }
  return {w.scheduler.hash, taken, pong.load()};
}

}  // namespace

TEST_CASE("threads that wait for each other in loops make progress, and equally on a follower",
          "[stall]") {
  const Mode mode = GENERATE(Mode::kSerial, Mode::kParallel);
  const Ran leader = ping_pong({.mode = mode}, nullptr, GENERATE(false, true));
  CHECK(leader.rounds == 6);
  if (mode == Mode::kSerial) CHECK(leader.orders.size() >= 6);
  for (int i = 0; i < 5; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const Ran follower =
        ping_pong({.mode = mode, .perturb_seed = seed, .perturb_max_us = 100}, &leader.orders);
    CHECK(follower.rounds == 6);
    // In parallel mode this program races, so the number of preemptions is not deterministic.
    if (mode == Mode::kSerial) CHECK(follower.hash == leader.hash);
  }
}

TEST_CASE("operations wait at the leader's clock limit, code between them does not", "[stall]") {
  World world(spinning({.mode = GENERATE(Mode::kSerial, Mode::kParallel), .quantum = 100}));
  Layout& w = world.w;
  std::atomic<int> between{0};
  world.run_as(world.main, [&](Slot me) {
    for (int i = 1; i <= 9; ++i) {
      operate(w, me);
      between.store(i);
    }
    finish(w, me);
  });
  set_leader_clock_limit(w, 5);
  world.start(kPlenty);
  admit_from_node(w);
  world.until("five turns", [&] { return between.load() == 5; });
  CHECK(w.scheduler.clock == 5);
  set_leader_clock_limit(w, 6);
  world.until("one more turn", [&] { return between.load() == 6; });
  CHECK(w.scheduler.clock == 6);
  world.until("the thread waits", [&] { return w.slots[value(world.main)].parked.load() == 1; });
  set_leader_clock_limit(w, kNoClock);
  world.drive();
  CHECK(between.load() == 9);
}

TEST_CASE("a thread that reaches its next operation gives way there", "[stall]") {
  World world(spinning({.mode = GENERATE(Mode::kSerial, Mode::kParallel), .quantum = 100}));
  Layout& w = world.w;
  std::vector<int> trace;
  const auto turns = [&](int name) {
    return [&, name](Slot me) {
      for (int i = 0; i < 4; ++i) {
        get_turn(w, me);
        trace.push_back(name);
        put_turn(w, me, kOp, 0, false);
      }
      finish(w, me);
    };
  };
  const Slot first = world.spawn(turns(1));
  world.spawn(turns(2));
  world.run_as(world.main, [&w](Slot me) { finish(w, me); });
  set_leader_clock_limit(w, 3);
  request_preemption(w, {3, 0, 0, value(first), 1});  // main's end is clock 0
  world.start(kPlenty);
  world.drive([&](bool) {
    if (preempt_requests_obeyed(w) == 1) set_leader_clock_limit(w, kNoClock);
  });
  CHECK(trace == std::vector<int>{1, 1, 2, 2, 2, 2, 1, 1});
  CHECK(w.slots[value(first)].preempted.load() == 1);
}

namespace {

constexpr std::uint64_t kSite = 0x100000;  // the place of the stalled thread in Stander's order
constexpr std::int64_t kMs = 1'000'000;

// The main thread of a replica that has an order to preempt it at its current place.
struct Stander {
  World world{spinning({.mode = Mode::kSerial, .quantum = 100})};
  Layout& w = world.w;
  Prober prober{w, world.main, kMs};
  Stander() {
    world.hold();
    operate(w, world.main);
    for (int i = 0; i < 40; ++i) REQUIRE_FALSE(is_held(kLoop, 5 * kMs, 5 * kMs));  // no order
    order_now();
  }
  bool is_held(std::uint64_t instruction, std::int64_t cpu, std::int64_t physical) {
    return prober.at(instruction, cpu, physical);
  }
  void order_now() {
    world.bubble(100);  // a thread that gives way alone takes the next entry
    set_leader_clock_limit(w, w.scheduler.clock);
    request_preemption(w, {w.scheduler.clock, kSite, kSite, value(world.main), 1});
  }
};

}  // namespace

TEST_CASE_METHOD(Stander, "which threads count as stalled", "[stall]") {
  SECTION("not a computation") {
    for (std::uint64_t i = 0; i < 100; ++i) {
      CHECK_FALSE(is_held(kLoop + (i % 5) * kSpinBytes, 5 * kMs, 5 * kMs));
    }
  }
  SECTION("a small loop, after enough processor time") {
    int looks = 1;
    while (!is_held(kLoop + static_cast<std::uint64_t>(looks % 7) * 8, 4 * kMs, 40 * kMs)) ++looks;
    CHECK(looks == static_cast<int>(kSpinSamples));
  }
  SECTION("time without a processor does not count, nor the time of the probes") {
    for (int i = 0; i < 30; ++i) CHECK_FALSE(is_held(kLoop, kMs / 2, 100 * kMs));
  }
  SECTION("a thread asleep in the kernel, after long enough") {
    const int second = static_cast<int>(kAsleepNs / (100 * kMs));
    for (int i = 0; i < 5; ++i) CHECK_FALSE(prober.asleep_at(kLoop, 100 * kMs));
    CHECK_FALSE(is_held(kLoop, kMs, 100 * kMs));  // it ran instead
    for (int i = 1; i < second; ++i) CHECK_FALSE(prober.asleep_at(kLoop, 100 * kMs));
    CHECK(prober.asleep_at(kLoop, 100 * kMs));
  }
  SECTION("a thread that gets no processor is not asleep") {
    for (int i = 0; i < 30; ++i) CHECK_FALSE(is_held(kLoop, 0, 100 * kMs));
  }
  SECTION("each clock restarts the measurement") {
    for (int i = 0; i < 6; ++i) CHECK_FALSE(is_held(kLoop, 4 * kMs, 4 * kMs));
    set_leader_clock_limit(w, kNoClock);
    operate(w, world.main);
    order_now();
    for (int i = 0; i < 6; ++i) CHECK_FALSE(is_held(kLoop, 4 * kMs, 4 * kMs));
  }
  SECTION("not a thread within an operation") {
    set_leader_clock_limit(w, kNoClock);
    get_turn(w, world.main);
    order_now();
    for (int i = 0; i < 30; ++i) CHECK_FALSE(is_held(kLoop, 5 * kMs, 5 * kMs));
  }
}

TEST_CASE_METHOD(Stander, "which probes count as a look at a known place", "[stall]") {
  SECTION("a thread that sleeps at a known place has looked each time") {
    for (int i = 0; i < 2; ++i) CHECK_FALSE(prober.asleep_at(kSite, 1000));
    CHECK(prober.asleep_at(kSite, 1000));
  }
  SECTION("a thread at a known place counts as stalled soon") {
    for (int i = 0; i < 2; ++i) CHECK_FALSE(is_held(kSite + kSiteMargin, kLookNs, 1000));
    CHECK_FALSE(is_held(kLoop, kLookNs, 1000));
    CHECK_FALSE(is_held(kSite, kLookNs, 1000));
    CHECK(is_held(kSite - kSiteMargin, kLookNs, 1000));
    CHECK(w.scheduler.stall_sites == 1);
  }
  SECTION("a thread that has not run since the last probe has not looked") {
    for (int i = 0; i < 100; ++i) CHECK_FALSE(is_held(kSite, kLookNs - 1, kMs));
    CHECK_FALSE(is_held(kSite, kLookNs, 1000));
    CHECK(is_held(kSite, kLookNs, 1000));
  }
  SECTION("a thread found with the same registers may not have looked") {
    CHECK_FALSE(is_held(kSite, kLookNs, 1000));
    const auto enough = static_cast<int>(kSiteLooks * kAlikeLooks);
    for (int i = 1; i < enough; ++i) CHECK_FALSE(prober.at(kSite, kLookNs, 1000, false));
    CHECK(prober.at(kSite, kLookNs, 1000, false));
  }
}

TEST_CASE("a preempted thread that is alone admits the waiting entries", "[stall]") {
  World world(spinning({.mode = Mode::kSerial, .quantum = 100}));
  Layout& w = world.w;
  world.hold();
  operate(w, world.main);
  const std::uint64_t index = world.bubble(500);
  set_leader_clock_limit(w, w.scheduler.clock);
  request_preemption(w, {w.scheduler.clock, 0, 0, value(world.main), 1});
  REQUIRE(has_preempt_request(w, world.main));
  CHECK(value(w.scheduler.admitted.index) < index);
  yield_turn(w, world.main);
  CHECK(value(w.scheduler.admitted.index) == index);
  CHECK(w.scheduler.grant_left == 500);
  CHECK(has_turn(w, world.main));
}

TEST_CASE("a sliced thread runs before a thread that gives way", "[stall][SLICE-3]") {
  World world(spinning({.mode = Mode::kParallel, .quantum = 100}));
  Layout& w = world.w;
  world.hold();
  operate(w, world.main);
  const Slot other = create_slot(w, 1), sliced = create_slot(w, 1);
  Slot expected = sliced;
  SECTION("the sliced thread may do the work that the other waits for") { end_slice(w, sliced); }
  SECTION("also if the thread that gives way is sliced, too") {
    end_slice(w, sliced);
    end_slice(w, world.main);
  }
  SECTION("but not if only the thread that gives way is sliced") {
    end_slice(w, world.main);
    expected = other;
  }
  w.scheduler.ends_grant = false;
  set_leader_clock_limit(w, w.scheduler.clock);
  request_preemption(w, {w.scheduler.clock, 0, 0, value(world.main), 1});
  yield_turn(w, world.main);
  CHECK(has_turn(w, expected));
}

TEST_CASE("giving way does not count as an operation of the thread", "[stall]") {
  // Random streams start at the number of operations, also outside of turns (D7): by chance before
  // or after giving way.
  World world(spinning({.mode = Mode::kSerial, .quantum = 100}));
  Layout& w = world.w;
  world.hold();
  operate(w, world.main);
  const std::uint64_t own = w.slots[value(world.main)].operations, clock = w.scheduler.clock;
  world.bubble(500);
  set_leader_clock_limit(w, clock);
  request_preemption(w, {clock, 0, 0, value(world.main), 1});
  yield_turn(w, world.main);
  CHECK(w.scheduler.clock == clock + 1);
  CHECK(w.slots[value(world.main)].operations == own);
}

TEST_CASE("a held thread is released when the replica no longer leads", "[stall]") {
  World world(spinning({.mode = Mode::kSerial, .quantum = 100}));
  Layout& w = world.w;
  std::atomic<bool> yielded{false}, released{false};
  world.run_as(world.main, [&](Slot me) {
    operate(w, me);
    Prober prober(w, me);
    for (int i = 0; i < 200 && w.scheduler.leading.load() != 0; ++i) {
      if (prober.at(kLoop)) yielded.store(true);
    }
    released.store(true);
    finish(w, me);
  });
  w.scheduler.leading.store(1);
  world.start(kPlenty);
  PreemptBody body{};
  world.drive([&](bool) {
    if (!has_held_thread(w, body)) return;
    w.scheduler.leading.store(0);
    release_held_thread(w);
    world.until("the thread is released", [&] { return released.load(); });
  });
  CHECK(body.slot == value(world.main));
  CHECK(body.clock == 1);
  CHECK_FALSE(yielded.load());
  CHECK(preempt_requests_obeyed(w) == 0);
}

TEST_CASE("an order that would be missed is a broken invariant", "[stall]") {
  const int status = in_child([] {
    World world(spinning({.mode = Mode::kSerial}));
    set_leader_clock_limit(world.w, 11);
    request_preemption(world.w, {10, 0, 0, 1, 1});
  });
  CHECK(status == 128 + SIGABRT);
}

namespace {

// Of two threads the first has the turn. It is about to take its third turn or, with `spins`, is
// after its fourth. The order of that clock names the first or the second thread.
int give_an_order(Mode mode, bool to_first, bool spins) {
  return in_child([=] {
    World world(spinning({.mode = mode, .quantum = 100}));
    Layout& w = world.w;
    const auto turns = [&w, spins](Slot me) {
      Prober prober(w, me);
      for (int i = 0; i < 4; ++i) operate(w, me);
      while (spins && preempt_requests_obeyed(w) == 0) prober.at(kLoop);
      finish(w, me);
    };
    const Slot first = world.spawn(turns);
    const Slot second = world.spawn(turns);
    world.run_as(world.main, [&w](Slot me) { finish(w, me); });
    const std::uint64_t clock = spins ? 5 : 3;  // main's end is clock 0
    set_leader_clock_limit(w, clock);
    world.start(kPlenty);
    admit_from_node(w);
    // The thread waits or spins where it is: the order comes late.
    world.until("that clock", [&] { return w.scheduler.clock == clock; });
    request_preemption(w, {clock, kLoop, kLoop, value(to_first ? first : second), 1});
    world.drive([&](bool) {
      if (preempt_requests_obeyed(w) == 1) set_leader_clock_limit(w, kNoClock);
    });
  });
}

}  // namespace

TEST_CASE("an order for a slot that does not have the turn fences the replica", "[stall][fence]") {
  const Mode mode = GENERATE(Mode::kSerial, Mode::kParallel);
  const bool spins = GENERATE(false, true);
  CHECK(give_an_order(mode, true, spins) == 0);
  CHECK(give_an_order(mode, false, spins) == kFenced);
}

// --- computations that leave by agreement --------------------------------------------------------

namespace {

struct Computed {
  std::uint64_t hash;
  PreemptBody request_preemption;
  std::vector<int> trace;
};

// Thread 1 computes between two turns until thread 2 has taken three. A thread that waited for it
// would wait forever. Without `leader_clock_limit` this is the leader's replica, which finds the
// computation. Otherwise it is a follower's: a probe finds thread 1, or thread 1 reaches its next
// operation.
Computed compute(Mode mode, const PreemptBody* leader_clock_limit, bool by_itself) {
  World world({.mode = mode,
               .quantum = 100,
               .stall_rule = StallRule::kComputations,
               .detached = kDetachAnyComputation});
  Layout& w = world.w;
  std::vector<int> trace;
  std::atomic<bool> done{by_itself};
  const auto turn = [&w, &trace](Slot me, int name) {
    get_turn(w, me);
    trace.push_back(name);
    put_turn(w, me, kOp, 0, false);
  };
  const Slot first = world.spawn([&](Slot me) {
    turn(me, 1);
    Prober prober(w, me);
    for (std::uint64_t n = 0; !done.load(); ++n) prober.at(kLoop + n * kSpinBytes);
    turn(me, 1);
    finish(w, me);
  });
  world.spawn([&](Slot me) {
    for (int i = 0; i < 3; ++i) turn(me, 2);
    done.store(true);
    finish(w, me);
  });
  world.run_as(world.main, [&w](Slot me) { finish(w, me); });
  PreemptBody body{};
  if (leader_clock_limit != nullptr) {
    body = *leader_clock_limit;
    set_leader_clock_limit(w, body.clock);
    request_preemption(w, body);
  }
  w.scheduler.leading.store(leader_clock_limit == nullptr ? 1 : 0);
  world.start(kPlenty);
  bool ordered = leader_clock_limit != nullptr, attached = false;
  const AttachBody back{value(first), 1};
  world.drive([&](bool) {
    if (!ordered && has_held_thread(w, body)) {
      ordered = true;
      request_preemption(w, body);
    }
    if (preempt_requests_obeyed(w) == 1) set_leader_clock_limit(w, kNoClock);
    if (attached || w.slots[value(first)].arrived.load() == 0) return;
    attached = true;
    world.push(EntryType::kAttach, kPlenty, &back, sizeof back);
  });
  return {w.scheduler.hash, body, trace};
}

// Returns whether a computing process is found that has another thread or memory that others see.
bool is_found(std::uint32_t detached, bool alone, bool shares, std::uint64_t processors = 0) {
  World world({.mode = Mode::kSerial,
               .quantum = 100,
               .stall_rule = StallRule::kComputations,
               .detached = detached,
               .processors = processors});
  Layout& w = world.w;
  const auto away = [&w](Slot me) {
    get_turn(w, me);
    detach(w, me, kOp);
  };
  world.spawn(away, 2);  // of another process
  w.processes[kMainProcess].shares_memory = shares;
  std::atomic<bool> looked{false};
  bool found = false;
  if (!alone) world.spawn([&w](Slot me) { finish(w, me); });
  world.run_as(world.main, [&](Slot me) {
    get_turn(w, me);
    put_turn(w, me, kOp, 0, alone);  // the other process' thread leaves; one of this would end
    Prober prober(w, me);
    for (std::uint64_t n = 0; n < 20; ++n) prober.at(kLoop + n * kSpinBytes);
    looked.store(true);
    finish(w, me);
  });
  w.scheduler.leading.store(1);
  world.start(kPlenty);
  world.drive([&](bool) {
    PreemptBody body{};
    if (!has_held_thread(w, body)) return;
    found = body.leaves == 1;
    w.scheduler.leading.store(0);
    release_held_thread(w);
    world.until("the probes are done", [&] { return looked.load(); });
  });
  return found;
}

}  // namespace

TEST_CASE("no thread waits for a computation that left, and it rejoins at one entry", "[stall]") {
  const Mode mode = GENERATE(Mode::kSerial, Mode::kParallel);
  const Computed leader = compute(mode, nullptr, false);
  CHECK(leader.request_preemption.leaves == 1);
  CHECK(leader.trace == std::vector<int>{1, 2, 2, 2, 1});
  for (const bool by_itself : {false, true}) {
    const Computed follower = compute(mode, &leader.request_preemption, by_itself);
    CHECK(follower.trace == leader.trace);
    CHECK(follower.hash == leader.hash);
  }
}

TEST_CASE("a computation that others could observe does not leave, unless all may leave",
          "[stall]") {
  CHECK(is_found(kDetachComputation, true, false));
  CHECK_FALSE(is_found(kDetachComputation, false, false));
  CHECK_FALSE(is_found(kDetachComputation, true, true));
  CHECK(is_found(kDetachAnyComputation, false, true));
}

TEST_CASE("at most as many computations leave as there are processors", "[stall]") {
  CHECK_FALSE(is_found(kDetachComputation, true, false, 0b100));
  CHECK(is_found(kDetachComputation, true, false, 0b101));
}
