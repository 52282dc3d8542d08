// SPDX-License-Identifier: Apache-2.0
// GOAL    What a node decides about the stall rule: which thread it probes, what it proposes, and
//         how far servers may run.
// METHOD  The machine, with a server whose state the test sets; time is a number.
// CHECKS  DMT-W2, STALL-1, the clock limits of leaders and followers, orders one by one,
// divergence.
#include "proxy/replica/check/stalls.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace crane;
using namespace crane::replica;
using namespace crane::replica::stalls;

namespace {

constexpr std::int64_t kMs = 1'000'000;
struct Role {
  bool leads, decides;
};
constexpr Role kFollower{false, false}, kNewLeader{true, false}, kLeader{true, true};

struct Fixture {
  explicit Fixture(bool on = true, bool alone = false, std::int64_t computation_ns = 0)
      : machine({on, alone, computation_ns}) {
    server.leader_clock_limit = on ? 0 : kNoClock;
    server.idle = true;
  }
  // The thread of slot `slot` has the turn, in the application's code, and others want it.
  void computes(std::uint16_t slot, std::uint64_t clock) {
    server.clock = clock;
    server.idle = false;
    server.holder = Holder{slot, clock, false, true, false};
  }
  void preempt(std::uint64_t clock, std::uint32_t slot) {
    machine.step(Preempt{{clock, 0, 0, slot, 1}}, 0);
  }
  void passed(std::uint64_t clock) { machine.step(Passed{clock}, 0); }
  std::int64_t step(std::int64_t now_ns, Role role) {
    server.leads = role.leads;
    server.decides = role.decides;
    machine.step(server, now_ns);
    ActionList list;
    while (machine.take_actions(list)) {
      for (const Action& action : list) {
        std::visit([this, now_ns](const auto& a) { carry_out(a, now_ns); }, action);
      }
    }
    return machine.deadline_ns();
  }
  bool has_news() const { return machine.has_news(server.obeyed, server.arrivals); }

  Stalls machine;
  Tick server;
  std::vector<AttachBody> arrived;
  std::optional<PreemptBody> ordered;  // the last order
  int progress_reports = 0, orders = 0;
  bool let_go = false;
  std::vector<std::uint16_t> probes;
  std::vector<std::uint64_t> leader_clock_limit;
  std::vector<PreemptBody> proposed;
  std::vector<AttachBody> attached;
  bool busy = false, diverged = false;
  int warned = 0;

 private:
  void carry_out(const SetLeaderClockLimit& limit, std::int64_t) {
    server.leader_clock_limit = limit.clock;
    ++progress_reports;
  }
  void carry_out(const RequestPreemption& order, std::int64_t) {
    REQUIRE((server.leader_clock_limit <= order.body.clock || server.held));  // DMT-W2
    ordered = order.body;
    ++orders;
  }
  void carry_out(const ReleaseHeldThread&, std::int64_t) {
    let_go = true;
    server.held.reset();
  }
  void carry_out(const Probe& probe, std::int64_t) { probes.push_back(probe.slot); }
  void carry_out(const Propose& proposal, std::int64_t now_ns) {
    if (!busy) std::visit([this](const auto& body) { note(body); }, proposal.entry);
    machine.step(Proposed{proposal.entry, !busy}, now_ns);
  }
  void carry_out(const LookForArrived&, std::int64_t now_ns) {
    machine.step(Arrived{arrived}, now_ns);
  }
  void carry_out(const Diverged&, std::int64_t) { diverged = true; }
  void carry_out(const Warn&, std::int64_t) { ++warned; }
  void note(const PreemptBody& body) { proposed.push_back(body); }
  void note(const PassedBody& body) { leader_clock_limit.push_back(body.clock); }
  void note(const AttachBody& body) { attached.push_back(body); }
};

}  // namespace

TEST_CASE("stalls: without the rule nothing waits, is probed or proposed", "[stalls]") {
  Fixture f(false);
  f.computes(3, 10);
  for (std::int64_t t = 0; t < 100; ++t) {
    CHECK(f.step(t * 100 * kMs, kLeader) == kNever);
  }
  CHECK(f.server.leader_clock_limit == kNoClock);
  CHECK(f.probes.empty());
  CHECK(f.leader_clock_limit.empty());
  CHECK(f.machine.stalled_thread().slot == 3);
  CHECK(f.machine.stalled_thread().clock == 10);
}

TEST_CASE("stalls: a follower's server waits for what the leader's has passed", "[stalls]") {
  Fixture f;
  CHECK(f.server.leader_clock_limit == 0);
  f.step(0, kFollower);
  CHECK(f.server.leader_clock_limit == 0);
  f.passed(100);
  REQUIRE(f.has_news());
  f.step(0, kFollower);
  CHECK_FALSE(f.has_news());
  CHECK(f.server.leader_clock_limit == 100);
  f.step(0, kLeader);
  CHECK(f.server.leader_clock_limit == kNoClock);
  f.step(0, kFollower);  // deposed: its server waits for what it did not announce
  CHECK(f.server.leader_clock_limit == 100);
}

TEST_CASE("stalls: W2, orders are passed on one by one and never overtaken", "[stalls]") {
  Fixture f;
  f.preempt(50, 3);
  f.preempt(70, 4);
  f.passed(90);
  f.step(0, kFollower);
  CHECK(f.server.leader_clock_limit == 50);
  CHECK(f.ordered->clock == 50);
  CHECK(f.ordered->slot == 3);
  f.server.clock = 51;  // obeyed
  f.server.obeyed = 1;
  REQUIRE(f.has_news());
  // A new leader also obeys what an earlier leader decided.
  f.step(0, kNewLeader);
  CHECK(f.server.leader_clock_limit == 70);
  CHECK(f.ordered->slot == 4);
  f.server.clock = 71;
  f.server.obeyed = 2;
  f.step(0, kFollower);
  CHECK(f.server.leader_clock_limit == 90);
  CHECK_FALSE(f.diverged);
}

TEST_CASE("stalls: a replica that is past an order has diverged", "[stalls]") {
  Fixture f;
  f.server.clock = 60;
  f.preempt(60, 3);
  f.step(0, kFollower);
  CHECK_FALSE(f.diverged);
  Fixture past;
  past.server.clock = 61;
  past.preempt(60, 3);
  past.step(0, kFollower);
  CHECK(past.diverged);
}

TEST_CASE("stalls: N1, which threads a leader probes", "[stalls]") {
  Fixture f;
  f.computes(3, 10);
  const auto after = [&f](std::int64_t from, std::int64_t until, Role role) {
    f.probes.clear();
    for (std::int64_t t = from; t < until; t += kMs) f.step(t, role);
    return f.probes.size();
  };
  SECTION("its own server, when it is stalled") {
    CHECK(after(0, 2 * kMs, kLeader) == 0);
    CHECK(after(2 * kMs, 20 * kMs, kLeader) >= 5);
    CHECK(f.probes[0] == 3);
    f.computes(3, 11);
    CHECK(after(20 * kMs, 22 * kMs, kLeader) == 0);
  }
  SECTION("sooner one that was stalled before") {
    f.server.holder->known = true;
    CHECK(after(0, 3 * kMs, kLeader) == 2);
  }
  SECTION("not before its START is admitted, unless for long") {
    CHECK(after(0, 1900 * kMs, kNewLeader) == 0);
    CHECK(after(1900 * kMs, 2100 * kMs, kNewLeader) > 0);
  }
  SECTION("never before the clock that an earlier leader has passed") {
    f.passed(11);
    CHECK(after(0, 3000 * kMs, kNewLeader) == 0);
  }
  SECTION("not when it would help no thread") {
    f.server.holder->helps = false;
    CHECK(after(0, 100 * kMs, kLeader) == 0);
  }
  SECTION("not inside an operation") {
    f.server.holder->in_operation = true;
    CHECK(after(0, 100 * kMs, kLeader) == 0);
    CHECK(f.machine.stalled_thread().since_ns == 99 * kMs);
  }
  SECTION("a follower probes the thread that the leader names, at that clock only") {
    CHECK(after(0, 100 * kMs, kFollower) == 0);
    f.preempt(12, 3);
    CHECK(after(100 * kMs, 110 * kMs, kFollower) == 0);
    f.computes(3, 12);
    CHECK(after(110 * kMs, 115 * kMs, kFollower) == 4);
  }
}

TEST_CASE("stalls: a held thread is proposed once, and released by a deposed leader", "[stalls]") {
  Fixture f;
  f.computes(3, 10);
  f.step(0, kLeader);
  f.server.held = PreemptBody{10, 0x40, 0x48, 3, 1};
  f.busy = true;
  f.step(0, kLeader);
  CHECK(f.proposed.empty());
  f.busy = false;
  f.step(0, kLeader);
  f.step(0, kLeader);
  REQUIRE(f.proposed.size() == 1);
  CHECK(f.proposed[0].slot == 3);
  SECTION("committed: the held thread obeys, the others need not wait") {
    f.preempt(10, 3);
    f.step(0, kLeader);
    CHECK(f.ordered->clock == 10);
    CHECK(f.server.leader_clock_limit == kNoClock);
  }
  SECTION("deposed: it continues, but takes no operation that the new leader may forbid") {
    f.passed(8);
    f.step(0, kFollower);
    CHECK(f.let_go);
    CHECK(f.server.leader_clock_limit == 8);
    // It leads again, and the thread is still there: its proposal is lost.
    f.server.held = PreemptBody{10, 0x40, 0x48, 3, 1};
    f.step(0, kLeader);
    REQUIRE(f.proposed.size() == 2);
    CHECK(f.proposed[1].clock == 10);
  }
}

TEST_CASE("stalls: the leader announces how far its server is, not too often", "[stalls]") {
  Fixture f;
  f.server.clock = 5;
  CHECK(f.step(kMs, kFollower) == kNever);
  CHECK(f.leader_clock_limit.empty());
  CHECK(f.step(kMs, kLeader) == kNever);
  CHECK(f.leader_clock_limit == std::vector<std::uint64_t>{5});
  for (int i = 0; i < 10; ++i) CHECK(f.step(100 * kMs, kLeader) == kNever);
  CHECK(f.leader_clock_limit.size() == 1);  // nothing new: an idle group sends nothing
  f.server.clock = 6;
  f.step(100 * kMs, kLeader);
  f.server.clock = 7;
  const std::int64_t due = f.step(100 * kMs, kLeader);
  CHECK(f.leader_clock_limit.size() == 2);
  REQUIRE(due > 100 * kMs);
  REQUIRE(due <= 101 * kMs);
  f.step(due, kLeader);
  CHECK(f.leader_clock_limit == std::vector<std::uint64_t>{5, 6, 7});
  // Deposed before its announcement was committed, and leading again: it repeats it.
  f.step(due, kFollower);
  f.step(due + kMs, kLeader);
  CHECK(f.leader_clock_limit == std::vector<std::uint64_t>{5, 6, 7, 7});
  Fixture alone(true, true);
  alone.server.clock = 5;
  alone.step(kMs, kLeader);
  CHECK(alone.leader_clock_limit.empty());
}

TEST_CASE("stalls: a leader proposes ATTACH for each thread that wants to rejoin, once",
          "[stalls]") {
  Fixture f(false);
  const auto arrive = [&f](std::uint32_t slot, std::uint32_t number) {
    f.arrived.push_back({slot, number});
    ++f.server.arrivals;
  };
  arrive(3, 1);
  REQUIRE(f.has_news());
  f.step(0, kFollower);
  CHECK_FALSE(f.has_news());
  CHECK(f.attached.empty());
  f.busy = true;
  f.step(0, kNewLeader);
  f.busy = false;
  f.step(0, kNewLeader);  // for threads that arrived under another leader too
  REQUIRE(f.attached.size() == 1);
  CHECK(f.attached[0].slot == 3);
  CHECK(f.attached[0].number == 1);
  arrive(5, 7);
  f.step(0, kLeader);
  f.step(0, kLeader);
  REQUIRE(f.attached.size() == 2);
  CHECK(f.attached[1].slot == 5);
  std::erase_if(f.arrived, [](const AttachBody& a) { return a.slot == 3; });
  ++f.server.arrivals;  // slot 3 was admitted, while another thread arrived and left
  f.step(0, kLeader);
  arrive(3, 2);
  f.step(0, kLeader);
  REQUIRE(f.attached.size() == 3);
  CHECK(f.attached[2].number == 2);
}

TEST_CASE("stalls: an admitted ATTACH is forgotten", "[stalls]") {
  Fixture f(false);
  f.arrived = {{3, 1}};
  f.server.arrivals = 1;
  f.step(0, kLeader);
  REQUIRE(f.attached.size() == 1);
  f.arrived.clear();
  f.server.arrivals = 2;
  f.step(0, kLeader);
  f.arrived = {{3, 1}};
  f.server.arrivals = 3;
  f.step(0, kLeader);
  CHECK(f.attached.size() == 2);
}

TEST_CASE("stalls: a new leader proposes ATTACH for all threads again", "[stalls]") {
  Fixture f(false);
  f.arrived = {{3, 1}};
  f.server.arrivals = 1;
  f.step(0, kLeader);
  f.step(0, kLeader);
  REQUIRE(f.attached.size() == 1);
  f.step(0, kFollower);
  f.step(0, kNewLeader);  // the earlier proposals may be lost
  CHECK(f.attached.size() == 2);
}

TEST_CASE("stalls: a thread that computes is probed in time, and reported as stalled once",
          "[stalls]") {
  Fixture f(true, false, kMs);
  f.computes(3, 10);
  f.server.holder->known = true;
  f.step(0, kLeader);
  f.step(kMs - 1, kLeader);
  CHECK(f.probes.empty());
  f.step(kMs, kLeader);
  CHECK(f.probes.size() == 1);
  CHECK(f.warned == 0);
  for (std::int64_t t = 5000; t < 5010; ++t) f.step(t * kMs, kLeader);
  CHECK(f.warned == 1);
}

TEST_CASE("stalls: a thread that is held is not probed", "[stalls]") {
  Fixture f;
  f.computes(3, 10);
  f.server.held = PreemptBody{10, 0, 0, 3, 1};
  for (std::int64_t t = 0; t < 100; ++t) f.step(t * kMs, kLeader);
  CHECK(f.probes.empty());
  CHECK(f.proposed.size() == 1);
}

TEST_CASE("stalls: a server from a checkpoint obeys only orders after it", "[stalls]") {
  Fixture f;
  f.server.obeyed = 4;  // by the server that was dumped
  f.machine.step(Restored{80, 60, 4}, 0);
  CHECK_FALSE(f.has_news());
  f.preempt(50, 3);
  f.server.clock = 60;
  f.step(0, kFollower);
  CHECK_FALSE(f.ordered);
  CHECK_FALSE(f.diverged);
  CHECK(f.server.leader_clock_limit == 80);
  f.preempt(70, 4);
  f.step(0, kFollower);
  REQUIRE(f.ordered);
  CHECK(f.ordered->slot == 4);
}

TEST_CASE("stalls: where all is known the log contains nothing new", "[stalls]") {
  Fixture f;
  f.passed(100);
  f.step(0, kFollower);
  f.machine.step(Closed{}, 0);
  f.passed(200);
  f.preempt(150, 3);
  CHECK_FALSE(f.has_news());
  f.step(0, kFollower);
  CHECK(f.server.leader_clock_limit == 100);
  CHECK_FALSE(f.ordered);
}

TEST_CASE("stalls: an order is passed on once, and is no divergence while it is being obeyed",
          "[stalls]") {
  Fixture f;
  f.preempt(50, 3);
  for (int i = 0; i < 3; ++i) f.step(0, kFollower);
  CHECK(f.server.leader_clock_limit == 50);  // also without a PASSED
  CHECK(f.progress_reports == 1);
  CHECK(f.orders == 1);
  f.server.clock = 51;  // it is not counted yet
  f.step(0, kFollower);
  CHECK_FALSE(f.diverged);
}

TEST_CASE(
    "stalls: ATTACH is proposed again for a thread that wants to rejoin after another detachment",
    "[stalls]") {
  Fixture f(false);
  f.arrived = {{3, 1}};
  f.server.arrivals = 1;
  f.step(0, kLeader);
  f.arrived = {{3, 2}};
  f.server.arrivals = 2;
  f.step(0, kLeader);
  REQUIRE(f.attached.size() == 2);
  CHECK(f.attached[1].number == 2);
}

TEST_CASE("stalls: what an earlier leader has announced is not announced again", "[stalls]") {
  Fixture f;
  f.step(0, kFollower);
  f.passed(10);
  f.server.clock = 8;
  f.step(kMs, kNewLeader);
  CHECK(f.leader_clock_limit.empty());
  f.server.clock = 11;
  f.busy = true;
  f.step(kMs, kLeader);
  f.busy = false;
  f.step(kMs, kLeader);
  CHECK(f.leader_clock_limit == std::vector<std::uint64_t>{11});
}

TEST_CASE("stalls: a working server announces its clock less often", "[stalls]") {
  Fixture f;
  f.server.clock = 5;
  f.step(kMs, kLeader);
  f.server.clock = 6;
  f.server.idle = false;
  CHECK(f.step(kMs + kMs / 5, kLeader) == 2 * kMs);
  CHECK(f.leader_clock_limit.size() == 1);
  f.server.idle = true;
  f.step(kMs + kMs / 5, kLeader);
  CHECK(f.leader_clock_limit.size() == 2);
}
