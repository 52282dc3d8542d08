// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/flow_control.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

using namespace crane;
using namespace crane::replica;

namespace {
constexpr std::int64_t kMs = 1'000'000;
constexpr ReplicaId kOne{1}, kTwo{2}, kThree{3}, kFour{4};
const std::vector<ReplicaId> kBoth{kOne, kTwo};

// A leader whose server admits one entry per millisecond: at time t it is at entry t.
struct Leader {
  FlowControl flow{250 * kMs};
  std::int64_t ms = 0;
  explicit Leader(std::int64_t first = 1000) { run(first); }
  void run(std::int64_t for_ms) {
    for (const std::int64_t end = ms + for_ms; ms < end;) {
      ++ms;
      flow.applied(Index{static_cast<std::uint64_t>(ms)}, ms * kMs);
    }
  }
  void receive(ReplicaId who, std::uint64_t applied, std::uint64_t recovers = 0) {
    flow.on_report(who, {applied, recovers}, ms * kMs);
  }
  bool late() const { return flow.has_late_follower(ms * kMs); }
  bool holds(const std::vector<ReplicaId>& others = kBoth, std::size_t needed = 1) const {
    return flow.holds(others, needed, ms * kMs);
  }
};
}  // namespace

TEST_CASE("a trail knows how long ago, in steps; the oldest step counts for everything before",
          "[flow]") {
  Trail trail;
  REQUIRE(trail.since(Index{0}) == 0);
  for (std::int64_t ms = 1; ms <= 1000; ++ms) {
    trail.at(Index{static_cast<std::uint64_t>(ms)}, ms * kMs);
  }
  const auto near = [&](std::uint64_t index, std::int64_t want_ms) {
    const std::int64_t ns = trail.since(Index{index});
    return ns <= want_ms * kMs && ns > want_ms * kMs - 2 * kTrailStepNs;
  };
  REQUIRE(near(900, 100));
  REQUIRE(near(500, 500));
  REQUIRE(trail.since(Index{1000}) == 0);
  REQUIRE(trail.since(Index{2000}) == 0);
  // Time without progress is not counted.
  trail.at(Index{1000}, 5000 * kMs);
  REQUIRE(near(900, 100));
  for (std::int64_t ms = 5001; ms <= 15000; ++ms) {
    trail.at(Index{static_cast<std::uint64_t>(ms)}, ms * kMs);
  }
  REQUIRE(trail.since(Index{1}) == trail.since(Index{6000}));
  REQUIRE(trail.since(Index{1}) >= 2 * kLagMostNs - 2 * kTrailStepNs);
  REQUIRE(near(14900, 100));
  REQUIRE(near(14000, 1000));
}

TEST_CASE("a trail distinguishes its own place from a later one", "[flow]") {
  Trail trail;
  trail.at(Index{10}, 100 * kMs);
  trail.at(Index{20}, 200 * kMs);
  REQUIRE(trail.since(Index{10}) == 0);
  REQUIRE(trail.since(Index{9}) == 100 * kMs);
  REQUIRE(trail.left(Index{20}) == 200 * kMs);
}

TEST_CASE("a late follower that moves reports its place at intervals", "[flow]") {
  ProgressReport report;
  report.committed(Index{1}, 1 * kMs);
  report.committed(Index{2}, 10 * kMs);
  REQUIRE_FALSE(report.due(Index{1}, 10 * kMs));  // not late
  report.committed(Index{5}, 100 * kMs);
  REQUIRE(report.due(Index{1}, 100 * kMs));
  report.committed(Index{9}, 200 * kMs);
  REQUIRE(report.due(Index{2}, 201 * kMs));
  REQUIRE_FALSE(report.due(Index{3}, 202 * kMs));  // a report was just sent
  REQUIRE(report.due(Index{3}, 201 * kMs + kReportNs));
  REQUIRE(report.due(Index{5}, 215 * kMs));        // the waiting entries are new: the last report
  REQUIRE_FALSE(report.due(Index{5}, 216 * kMs));  // once
  REQUIRE_FALSE(report.due(Index{9}, 900 * kMs));  // it has run all entries
}

TEST_CASE("a follower that does not move reports that for a while", "[flow]") {
  constexpr auto kNone = std::numeric_limits<std::int64_t>::max();
  ProgressReport report;
  report.committed(Index{5}, 1 * kMs);
  std::int64_t now = 100 * kMs;
  REQUIRE(report.due(Index{1}, now));
  int times = 0;
  for (std::int64_t next = 0; (next = report.again_ns(now)) != kNone; now = next) {
    REQUIRE(next == now + kRepeatNs);
    REQUIRE_FALSE(report.due(Index{1}, next - 1));
    REQUIRE(report.due(Index{1}, next));
    ++times;
  }
  REQUIRE(times == kStalledNs / kRepeatNs);
  REQUIRE_FALSE(report.due(Index{1}, now + kStalledNs));
  REQUIRE(report.again_ns(now + kStalledNs) == kNone);
  REQUIRE(report.due(Index{2}, now + 2 * kStalledNs));  // it moved again
  REQUIRE(report.again_ns(now + 2 * kStalledNs) == now + 2 * kStalledNs + kRepeatNs);
  // A late look must not cause another look at once, again and again.
  REQUIRE_FALSE(report.due(Index{2}, now + 4 * kStalledNs));
  REQUIRE(report.again_ns(now + 4 * kStalledNs) == kNone);
  REQUIRE(report.due(Index{5}, now + 5 * kStalledNs));
  REQUIRE(report.again_ns(now + 5 * kStalledNs) == kNone);
}

TEST_CASE("a server without old entries for a while has caught up", "[flow]") {
  ProgressReport report;
  REQUIRE_FALSE(report.due(Index{0}, 10 * kMs));
  REQUIRE_FALSE(report.caught_up(10 * kMs + kHelpAfterNs));  // it has no log yet
  report.committed(Index{5}, 500 * kMs);
  REQUIRE_FALSE(report.due(Index{4}, 500 * kMs));
  REQUIRE_FALSE(report.caught_up(499 * kMs + kHelpAfterNs));
  REQUIRE(report.caught_up(500 * kMs + kHelpAfterNs));
  REQUIRE(report.due(Index{4}, 600 * kMs));  // late
  REQUIRE(report.due(Index{5}, 700 * kMs));
  REQUIRE_FALSE(report.caught_up(699 * kMs + kHelpAfterNs));
  REQUIRE(report.caught_up(700 * kMs + kHelpAfterNs));
}

TEST_CASE("W4: clients wait when no majority is near, until one is", "[flow]") {
  Leader leader;
  REQUIRE_FALSE(leader.late());
  leader.receive(kOne, 700);
  REQUIRE(leader.late());
  REQUIRE_FALSE(leader.holds());  // the other one is near, according to the last report
  leader.receive(kTwo, 900);
  REQUIRE_FALSE(leader.holds());  // within the limit
  leader.receive(kTwo, 600);
  REQUIRE(leader.holds());
  // The faster one counts; its lag does not grow while the leader does not move.
  leader.ms += 50;
  leader.receive(kOne, 760);
  REQUIRE_FALSE(leader.holds());
}

TEST_CASE("W4: of five, clients wait for the second fastest of the others", "[flow]") {
  const std::vector<ReplicaId> all{kOne, kTwo, kThree, kFour};
  Leader leader;
  leader.receive(kOne, 100);
  leader.receive(kTwo, 100);
  REQUIRE_FALSE(leader.holds(all, 2));
  leader.receive(kThree, 100);
  REQUIRE(leader.holds(all, 2));
  leader.receive(kThree, 990);
  REQUIRE_FALSE(leader.holds(all, 2));
}

TEST_CASE("W4: a silent follower is not waited for, nor is one when the others are too few",
          "[flow]") {
  Leader leader;
  leader.receive(kOne, 100);
  leader.receive(kTwo, 100);
  REQUIRE(leader.holds());
  leader.run(kReportValidNs / kMs + 1);
  REQUIRE_FALSE(leader.late());
  REQUIRE_FALSE(leader.holds());
  leader.receive(kOne, 100);
  REQUIRE(leader.holds({kOne}, 1));    // the other one is absent
  REQUIRE_FALSE(leader.holds({}, 1));  // both are absent: nothing is committed anyway
  REQUIRE_FALSE(leader.holds({kTwo}, 1));
}

TEST_CASE("a limit of 0: no client waits", "[flow]") {
  Leader leader;
  leader.flow = FlowControl{0};
  leader.run(1000);
  leader.receive(kOne, 1);
  leader.receive(kTwo, 1);
  REQUIRE_FALSE(leader.late());
  REQUIRE_FALSE(leader.holds());
}

TEST_CASE("reports of another reign do not count", "[flow]") {
  Leader leader;
  leader.receive(kOne, 1);
  leader.receive(kTwo, 1);
  leader.flow.lead();
  REQUIRE_FALSE(leader.late());
  REQUIRE_FALSE(leader.holds());
}

namespace {
// A follower runs `speed` entries per millisecond; the leader's server runs one, unless clients
// wait.
struct Return {
  Leader leader{2000};
  std::uint64_t at = 0, own = 2000;
  // Returns how many entries the leader's server runs meanwhile.
  std::uint64_t run(std::int64_t for_ms, std::uint64_t speed, std::uint64_t recovers = 1) {
    const std::uint64_t before = own;
    for (std::int64_t i = 0; i < for_ms; ++i) {
      ++leader.ms;
      at += speed;
      leader.receive(kOne, at, recovers);
      if (!leader.holds()) leader.flow.applied(Index{++own}, leader.ms * kMs);
    }
    return own - before;
  }
};
constexpr std::int64_t kGraceMs = kHelpAfterNs / kMs;
}  // namespace

TEST_CASE("a recovering follower that does not catch up runs two entries for one of the leader's",
          "[flow]") {
  Return r;
  REQUIRE(r.run(kGraceMs, 1) == kGraceMs);  // not at once
  const std::uint64_t helped = r.run(1000, 1);
  REQUIRE(helped >= 500);
  REQUIRE(helped <= 500 + kHelpSlack + 2);
  // There is no reason to wait for a follower that runs twice as much anyway.
  Return fast;
  fast.own = 60'000;
  fast.leader.flow.applied(Index{fast.own}, fast.leader.ms * kMs);
  REQUIRE(fast.run(2000, 2) == 2000);
  // Nor for one that is no longer late.
  Return near;
  near.at = 1900;
  REQUIRE(near.run(2000, 1) == 2000);
}

TEST_CASE("clients keep half of their rate, however slowly a follower recovers", "[flow][FLOW-2]") {
  Return r;
  for (int ms = 0; ms < 2000; ++ms) r.leader.flow.applied(Index{++r.own}, ++r.leader.ms * kMs);
  r.at = 1;
  REQUIRE(r.run(kGraceMs, 0) == kGraceMs);
  const std::uint64_t helped = r.run(1000, 0);  // it reports, and does not move
  REQUIRE(helped >= 500);
  REQUIRE(helped <= 500 + kHelpSlack + 2);
}

TEST_CASE("if one more replica may be lost without it, a recovering one is not waited for",
          "[flow][FLOW-2]") {
  Return r;
  REQUIRE(r.run(kGraceMs, 1) == kGraceMs);
  REQUIRE(r.run(500, 1) < 400);
  r.leader.flow.applied(Index{r.own + 500}, r.leader.ms * kMs);
  REQUIRE(r.leader.holds({kOne, kTwo}, 1));          // three replicas: all but one are needed
  REQUIRE(r.leader.holds({kOne, kTwo, kThree}, 2));  // five replicas, one absent
  REQUIRE_FALSE(r.leader.holds({kOne, kTwo, kThree, kFour}, 2));  // five replicas
}

TEST_CASE("a recovering follower is helped for a minute, and again after the next return",
          "[flow]") {
  Return r;
  r.at = 1;
  for (std::int64_t ms = 0; ms <= kHelpNs / kMs; ms += 10) {
    r.leader.ms += 10;
    r.leader.flow.applied(Index{r.own += 10}, r.leader.ms * kMs);
    r.leader.receive(kOne, r.at += 1, 1);
    if (ms > 1000 && ms < kHelpNs / kMs) REQUIRE(r.leader.holds());
  }
  REQUIRE(r.run(1000, 1) == 1000);
  REQUIRE(r.run(1000, 1, 0) == 1000);  // late, but the other one is not
  r.leader.ms += kHelpAfterNs / kMs + 1;
  REQUIRE(r.run(1000, 1) == 1000);  // it was only silent
  REQUIRE(r.run(kGraceMs, 1, 2) == kGraceMs);
  REQUIRE(r.run(1000, 1, 2) < 600);
  r.at = 1;  // it died, and returns at once
  REQUIRE(r.run(kGraceMs, 1, 3) == kGraceMs);
  REQUIRE(r.run(1000, 1, 3) < 600);
}

TEST_CASE("a recovering follower is no reason to wait longer for another one", "[flow]") {
  Leader leader;
  leader.receive(kOne, 10, 1);
  leader.receive(kTwo, 10);
  REQUIRE(leader.holds());  // without it the late one is needed
  leader.run(kReportValidNs / kMs + 1);
  leader.receive(kTwo, 10);
  REQUIRE_FALSE(leader.holds());  // it is silent now: it has caught up
  leader.receive(kOne, static_cast<std::uint64_t>(leader.ms) - 100, 1);
  REQUIRE_FALSE(leader.holds());  // it recovers, and is already near
}

TEST_CASE("a follower that was stopped returns like a recovering one", "[flow][FLOW-1]") {
  Leader leader;
  leader.receive(kOne, 10, 1);
  leader.receive(kTwo, 1000);
  leader.run(kStalledNs / kMs + 1);  // kTwo is stopped
  leader.receive(kOne, 10, 1);
  leader.receive(kTwo, 1000);
  REQUIRE(leader.late());
  REQUIRE_FALSE(leader.holds());
  for (int i = 0; i < kHelpAfterNs / kMs; ++i) {
    leader.run(1);
    leader.receive(kTwo, 1001);
    REQUIRE_FALSE(leader.holds());
  }
  leader.run(kHelpSlack + 400);
  leader.receive(kTwo, 1002);
  REQUIRE(leader.holds());  // it is helped now, for clients keep half of their rate
  leader.receive(kTwo, static_cast<std::uint64_t>(leader.ms) - 100);
  REQUIRE_FALSE(leader.holds());
  leader.run(300);
  leader.receive(kTwo, static_cast<std::uint64_t>(leader.ms) - 400);
  leader.receive(kOne, 10, 1);
  REQUIRE(leader.holds());  // it was near again: an ordinary late follower
}

TEST_CASE("what the leader's server ran while a follower was silent is no debt", "[flow][FLOW-2]") {
  Return r;
  REQUIRE(r.run(kGraceMs + 100, 1) > 0);
  for (int ms = 0; ms < 3000; ++ms) r.leader.flow.applied(Index{++r.own}, ++r.leader.ms * kMs);
  REQUIRE(r.run(1000, 1) >= 400);  // half of its rate, without a long stop
}
