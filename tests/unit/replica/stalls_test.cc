// SPDX-License-Identifier: Apache-2.0
// GOAL    The node's part of the stall rule: whom it probes, what it proposes, what it lets pass.
// METHOD  A segment whose words the test sets as a server would; time is a number.
// CHECKS  DMT-W2, STALL-1, the told clock of leaders and followers, orders one by one, divergence.
#include "proxy/host/stall_watch.h"

#include <catch2/catch.hpp>
#include <vector>

#include "dmt/scheduler.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/grants.h"
#include "tests/unit/node/segment_memory.h"

using namespace crane;
using namespace crane::node;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr StallWatch::Role kFollower{false, false}, kNewLeader{true, false}, kLeader{true, true};

struct Fixture : test::SegmentMemory {
  explicit Fixture(bool on = true, std::uint8_t replicas = 3)
      : SegmentMemory(configuration(on)),
        watch(w, replicas,
              {[this](std::uint16_t process) { probes.push_back(process); },
               [this](EntryType type, std::span<const std::byte> body) {
                 if (busy) return false;
                 PassedBody passed{};
                 if (type == EntryType::kPassed && proxy::read_body(body, passed)) {
                   told.push_back(passed.clock);
                 } else if (type == EntryType::kAttach) {
                   REQUIRE(proxy::read_body(body, attached.emplace_back()));
                 } else {
                   REQUIRE(proxy::read_body(body, proposed.emplace_back()));
                 }
                 return true;
               },
               [this](const char*) { diverged = true; }}) {}
  static dmt::Configuration configuration(bool on) {
    dmt::Configuration c = serial();
    c.stall_rule = on ? dmt::StallRule::kSpins : dmt::StallRule::kOff;
    return c;
  }
  // Slot `slot` of process 5 has the turn, in the application's code, and others want it.
  void computes(std::uint32_t slot, std::uint64_t clock) {
    w.slots[slot].process = 5;
    w.scheduler.clock = clock;
    w.scheduler.runnable = 2;
    w.scheduler.holder.store(slot);
  }
  void preempt(std::uint64_t clock, std::uint32_t slot) {
    const PreemptBody body{clock, 0, 0, slot, 1};
    watch.committed(EntryType::kPreempt, proxy::bytes_of(body));
  }
  void passed(std::uint64_t clock) {
    watch.committed(EntryType::kPassed, proxy::bytes_of(PassedBody{clock}));
  }

  std::vector<std::uint16_t> probes;
  std::vector<std::uint64_t> told;
  std::vector<PreemptBody> proposed;
  std::vector<AttachBody> attached;
  bool busy = false, diverged = false;
  StallWatch watch;
};

}  // namespace

TEST_CASE("stalls: without the rule nothing waits, is probed or proposed", "[stalls]") {
  Fixture f(false);
  f.computes(3, 10);
  for (std::int64_t t = 0; t < 100; ++t) {
    CHECK(f.watch.step(t * 100 * kMs, kLeader) == proxy::kNever);
  }
  CHECK(dmt::told_clock(f.w) == dmt::kNoClock);
  CHECK(f.probes.empty());
  CHECK(f.told.empty());
  CHECK(f.watch.standing().slot == 3);
  CHECK(f.watch.standing().clock == 10);
}

TEST_CASE("stalls: a follower's server waits for what the leader's has passed", "[stalls]") {
  Fixture f;
  CHECK(dmt::told_clock(f.w) == 0);
  f.watch.step(0, kFollower);
  CHECK(dmt::told_clock(f.w) == 0);
  f.passed(100);
  REQUIRE(f.watch.has_news());
  f.watch.step(0, kFollower);
  CHECK_FALSE(f.watch.has_news());
  CHECK(dmt::told_clock(f.w) == 100);
  f.watch.step(0, kLeader);
  CHECK(dmt::told_clock(f.w) == dmt::kNoClock);
  f.watch.step(0, kFollower);  // deposed: what it did not tell anybody, it waits for
  CHECK(dmt::told_clock(f.w) == 100);
}

TEST_CASE("stalls: W2, orders are handed out one by one and never overtaken", "[stalls]") {
  Fixture f;
  f.preempt(50, 3);
  f.preempt(70, 4);
  f.passed(90);
  f.watch.step(0, kFollower);
  CHECK(dmt::told_clock(f.w) == 50);
  CHECK(f.w.scheduler.preempt_clock.load() == 50);
  CHECK(f.w.scheduler.preempt_slot.load() == 3);
  f.w.scheduler.clock = 51;  // obeyed
  f.w.scheduler.orders_obeyed.store(1);
  REQUIRE(f.watch.has_news());
  // Also one who has come to lead obeys what an earlier leader decided.
  f.watch.step(0, kNewLeader);
  CHECK(dmt::told_clock(f.w) == 70);
  CHECK(f.w.scheduler.preempt_slot.load() == 4);
  f.w.scheduler.clock = 71;
  f.w.scheduler.orders_obeyed.store(2);
  f.watch.step(0, kFollower);
  CHECK(dmt::told_clock(f.w) == 90);
  CHECK_FALSE(f.diverged);
}

TEST_CASE("stalls: a replica that is past an order has diverged", "[stalls]") {
  Fixture f;
  f.w.scheduler.clock = 60;
  f.preempt(60, 3);
  f.watch.step(0, kFollower);
  CHECK_FALSE(f.diverged);
  Fixture past;
  past.w.scheduler.clock = 61;
  past.preempt(60, 3);
  past.watch.step(0, kFollower);
  CHECK(past.diverged);
}

TEST_CASE("stalls: N1, whom a leader probes", "[stalls]") {
  Fixture f;
  f.computes(3, 10);
  const auto after = [&f](std::int64_t from, std::int64_t until, StallWatch::Role role) {
    f.probes.clear();
    for (std::int64_t t = from; t < until; t += kMs) f.watch.step(t, role);
    return f.probes.size();
  };
  SECTION("its own server, when it is stalled") {
    CHECK(after(0, 2 * kMs, kLeader) == 0);
    CHECK(after(2 * kMs, 20 * kMs, kLeader) >= 5);
    CHECK(f.probes[0] == 5);
    f.computes(3, 11);
    CHECK(after(20 * kMs, 22 * kMs, kLeader) == 0);
  }
  SECTION("sooner who was stalled before") {
    f.w.slots[3].preempted.store(1);
    CHECK(after(0, 3 * kMs, kLeader) == 2);
  }
  SECTION("not before its START is admitted, unless for long") {
    CHECK(after(0, 1900 * kMs, kNewLeader) == 0);
    CHECK(after(1900 * kMs, 2100 * kMs, kNewLeader) > 0);
  }
  SECTION("never before it where an earlier leader has passed") {
    f.passed(11);
    CHECK(after(0, 3000 * kMs, kNewLeader) == 0);
  }
  SECTION("not when it would help nobody") {
    f.w.scheduler.runnable = 1;
    CHECK(after(0, 100 * kMs, kLeader) == 0);
  }
  SECTION("not within an operation") {
    f.w.slots[3].in_operation.store(1);
    CHECK(after(0, 100 * kMs, kLeader) == 0);
    CHECK(f.watch.standing().since_ns == 99 * kMs);
  }
  SECTION("a follower whom the leader says, at that clock only") {
    CHECK(after(0, 100 * kMs, kFollower) == 0);
    f.preempt(12, 3);
    CHECK(after(100 * kMs, 110 * kMs, kFollower) == 0);
    f.computes(3, 12);
    CHECK(after(110 * kMs, 115 * kMs, kFollower) == 4);
  }
}

TEST_CASE("stalls: a caught slot is proposed once, and let go by a deposed leader", "[stalls]") {
  Fixture f;
  f.computes(3, 10);
  f.w.scheduler.catch_ = {10, 0x40, 0x48, 3, 1};
  f.watch.step(0, kLeader);
  f.w.scheduler.caught.store(dmt::Caught::kHeld);
  f.busy = true;
  f.watch.step(0, kLeader);
  CHECK(f.proposed.empty());
  f.busy = false;
  f.watch.step(0, kLeader);
  f.watch.step(0, kLeader);
  REQUIRE(f.proposed.size() == 1);
  CHECK(f.proposed[0].slot == 3);
  SECTION("committed: the held slot obeys, the others need not wait") {
    f.preempt(10, 3);
    f.watch.step(0, kLeader);
    CHECK(f.w.scheduler.preempt_clock.load() == 10);
    CHECK(dmt::told_clock(f.w) == dmt::kNoClock);
  }
  SECTION("deposed: it goes on, but takes no operation that the new leader may forbid") {
    f.passed(8);
    f.watch.step(0, kFollower);
    CHECK(f.w.scheduler.caught.load() == dmt::Caught::kLetGo);
    CHECK(dmt::told_clock(f.w) == 8);
    // It leads again, still there: what it proposed is lost.
    f.w.scheduler.caught.store(dmt::Caught::kHeld);
    f.watch.step(0, kLeader);
    REQUIRE(f.proposed.size() == 2);
    CHECK(f.proposed[1].clock == 10);
  }
}

TEST_CASE("stalls: the leader tells how far its server is, not too often", "[stalls]") {
  Fixture f;
  f.w.scheduler.clock = 5;
  CHECK(f.watch.step(kMs, kFollower) == proxy::kNever);
  CHECK(f.told.empty());
  CHECK(f.watch.step(kMs, kLeader) == proxy::kNever);
  CHECK(f.told == std::vector<std::uint64_t>{5});
  for (int i = 0; i < 10; ++i) CHECK(f.watch.step(100 * kMs, kLeader) == proxy::kNever);
  CHECK(f.told.size() == 1);  // nothing new: an idle group says nothing
  f.w.scheduler.clock = 6;
  f.watch.step(100 * kMs, kLeader);
  f.w.scheduler.clock = 7;
  const std::int64_t due = f.watch.step(100 * kMs, kLeader);
  CHECK(f.told.size() == 2);
  REQUIRE(due > 100 * kMs);
  REQUIRE(due <= 101 * kMs);
  f.watch.step(due, kLeader);
  CHECK(f.told == std::vector<std::uint64_t>{5, 6, 7});
  // Deposed, with what it told lost, and leading again: it tells it again.
  f.watch.step(due, kFollower);
  f.watch.step(due + kMs, kLeader);
  CHECK(f.told == std::vector<std::uint64_t>{5, 6, 7, 7});
  Fixture alone(true, 1);
  alone.w.scheduler.clock = 5;
  alone.watch.step(kMs, kLeader);
  CHECK(alone.told.empty());
}

TEST_CASE("stalls: a leader brings back whose thread is there, once", "[stalls]") {
  Fixture f(false);
  f.w.scheduler.slots_used = 8;
  const auto arrive = [&f](std::uint32_t slot, std::uint32_t number) {
    f.w.slots[slot].detachments.store(number);
    f.w.slots[slot].arrived.store(1);
    f.w.scheduler.arrivals.fetch_add(1);
  };
  arrive(3, 1);
  REQUIRE(f.watch.has_news());
  f.watch.step(0, kFollower);
  CHECK_FALSE(f.watch.has_news());
  CHECK(f.attached.empty());
  f.busy = true;
  f.watch.step(0, kNewLeader);
  f.busy = false;
  f.watch.step(0, kNewLeader);  // who arrived under another leader too
  REQUIRE(f.attached.size() == 1);
  CHECK(f.attached[0].slot == 3);
  CHECK(f.attached[0].number == 1);
  arrive(5, 7);
  f.watch.step(0, kLeader);
  f.watch.step(0, kLeader);
  REQUIRE(f.attached.size() == 2);
  CHECK(f.attached[1].slot == 5);
  f.w.slots[3].arrived.store(0);  // admitted; and away again
  arrive(3, 2);
  f.watch.step(0, kLeader);
  REQUIRE(f.attached.size() == 3);
  CHECK(f.attached[2].number == 2);
}
