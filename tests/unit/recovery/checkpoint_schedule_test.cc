// SPDX-License-Identifier: Apache-2.0
// GOAL    The next checkpoint is requested in time, and requests never stop.
// METHOD  CheckpointSchedule and RunTrail alone: the test is the clock, the log and the replicas.
// CHECKS  SCHEDULE-1, SCHEDULE-2.
#include "proxy/replica/recovery/checkpoint_schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>

using crane::replica::CheckpointSchedule;
using crane::replica::RunTrail;

namespace {
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMb = 1U << 20;

// Requests a checkpoint when one is due.  It is taken at once, unless the test decides otherwise.
struct Leader {
  CheckpointSchedule schedule;
  explicit Leader(const CheckpointSchedule::Limits& limits) : schedule(limits) {}
  bool due(std::int64_t now_ns, std::uint64_t pos, std::uint64_t inputs, bool low = false) {
    if (!asks(now_ns, pos, inputs, low)) return false;
    schedule.taken(pos, now_ns);
    return true;
  }
  bool asks(std::int64_t now_ns, std::uint64_t pos, std::uint64_t inputs, bool low = false) {
    const CheckpointSchedule::Inputs seen{now_ns, pos, inputs, low};
    if (!schedule.due(seen)) return false;
    schedule.asked(seen);
    return true;
  }
};
}  // namespace

TEST_CASE("checkpoint schedule: by the clock, if clients have sent something", "[checkpoint]") {
  Leader schedule({60 * kSecond, 64 * kMb});
  CHECK_FALSE(schedule.due(1 * kSecond, 0, 0));
  CHECK_FALSE(schedule.due(61 * kSecond, 1000, 0));
  CHECK_FALSE(schedule.due(100 * kSecond, 2000, 5));
  CHECK(schedule.due(121 * kSecond, 2000, 5));
  CHECK_FALSE(schedule.due(181 * kSecond, 3000, 5));
  CHECK(schedule.due(241 * kSecond, 3000, 6));
}

TEST_CASE("checkpoint schedule: a log that grows fast does not wait for the clock",
          "[checkpoint]") {
  Leader schedule({60 * kSecond, 64 * kMb});
  CHECK_FALSE(schedule.due(1 * kSecond, 0, 0));
  CHECK_FALSE(schedule.due(2 * kSecond, 70 * kMb, 1));  // too soon
  CHECK(schedule.due(4 * kSecond, 70 * kMb, 2));
  CHECK_FALSE(schedule.due(10 * kSecond, 100 * kMb, 3));
  CHECK(schedule.due(11 * kSecond, 134 * kMb, 4));
}

TEST_CASE("checkpoint schedule: an idle server's entries do not pile up without end",
          "[checkpoint]") {
  Leader schedule({60 * kSecond, 64 * kMb});
  CHECK_FALSE(schedule.due(1 * kSecond, 0, 0));
  // A week of ten entries per second, 80 bytes each, checked every second.
  int taken = 0;
  std::uint64_t since = 0, most = 0;
  constexpr std::int64_t kWeek = 7 * 24 * 3600;
  for (std::int64_t s = 2; s < kWeek; ++s) {
    const std::uint64_t pos = static_cast<std::uint64_t>(s) * 800;
    most = std::max(most, pos - since);
    if (!schedule.due(s * kSecond, pos, 0)) continue;
    ++taken;
    since = pos;
  }
  CHECK(most <= 8 * kMb + 1600);
  CHECK(taken >= 56);
  CHECK(taken <= 58);  // one per three hours
}

TEST_CASE("checkpoint schedule: if a disk has little room, its log is cut soon", "[checkpoint]") {
  Leader schedule({60 * kSecond, 64 * kMb});
  CHECK_FALSE(schedule.due(1 * kSecond, 0, 0, true));
  CHECK_FALSE(schedule.due(2 * kSecond, 1000, 1, true));  // nothing to cut
  CHECK(schedule.due(3 * kSecond, 2 * kMb, 2, true));
  CHECK_FALSE(schedule.due(4 * kSecond, 4 * kMb, 3, true));  // too soon after the last one
  CHECK(schedule.due(8 * kSecond, 4 * kMb, 3, true));
  CHECK_FALSE(schedule.due(20 * kSecond, 8 * kMb, 4, false));
  Leader by_nothing({0, 0});
  CHECK_FALSE(by_nothing.due(1 * kSecond, 0, 0, true));
  CHECK_FALSE(by_nothing.due(100 * kSecond, 1000 * kMb, 10, true));
}

TEST_CASE("checkpoint schedule: without a limit by length none is taken for the log",
          "[checkpoint]") {
  Leader by_clock({60 * kSecond, 0});
  CHECK_FALSE(by_clock.due(1 * kSecond, 0, 0));
  CHECK_FALSE(by_clock.due(100 * kSecond, 1000 * kMb, 0));
  Leader by_nothing({0, 0});
  CHECK_FALSE(by_nothing.due(1 * kSecond, 0, 0));
  CHECK_FALSE(by_nothing.due(100 * kSecond, 1000 * kMb, 10));
}

TEST_CASE("checkpoint schedule: due when a return would take long, however short the log is",
          "[checkpoint]") {
  Leader leader({60 * kSecond, 64 * kMb, 5 * kSecond});
  auto& schedule = leader.schedule;
  CHECK_FALSE(leader.asks(1 * kSecond, 0, 0));
  // The server runs half of the time, by entries of a kilobyte.
  const auto run = [&](std::int64_t s) { schedule.ran(s * 1000, s * kSecond / 2); };
  for (std::int64_t s = 2; s < 10; ++s) {
    run(s);
    CHECK_FALSE(leader.asks(s * kSecond, s * 1000, 1));
  }
  run(10);
  CHECK(leader.asks(10 * kSecond, 10'000, 1));
  SECTION("the next one is due correspondingly later") {
    schedule.taken(10'000, 11 * kSecond);
    std::int64_t s = 11;
    for (; s < 1000; ++s) {
      run(s);
      if (leader.asks(s * kSecond, s * 1000, 1)) break;
    }
    CHECK(s == 20);
  }
  SECTION("a pause follows one that took long") {
    schedule.taken(10'000, 20 * kSecond);
    std::int64_t s = 21;
    for (; s < 1000; ++s) {
      run(s);
      if (leader.asks(s * kSecond, s * 1000, 1)) break;
    }
    CHECK(s == 50);
  }
}

TEST_CASE("checkpoint schedule: half of the ring is sufficient reason", "[SCHEDULE-2]") {
  Leader leader({60 * kSecond, 1000 * kMb, 0, 128 * kMb});
  auto& schedule = leader.schedule;
  CHECK_FALSE(leader.asks(1 * kSecond, 0, 0));
  CHECK_FALSE(leader.asks(kSecond + 1, 63 * kMb, 1));
  CHECK_FALSE(schedule.is_urgent(63 * kMb));
  CHECK(schedule.is_urgent(64 * kMb));
  REQUIRE(leader.asks(kSecond + 2, 64 * kMb, 1));
  SECTION("counted from the newest one on") {
    schedule.taken(64 * kMb, 2 * kSecond);
    CHECK_FALSE(leader.asks(2 * kSecond, 127 * kMb, 2));
    CHECK(leader.asks(2 * kSecond + 1, 128 * kMb, 2));
  }
  SECTION("another one soon follows one that is not reported") {
    CHECK_FALSE(leader.asks(4 * kSecond, 70 * kMb, 2));
    CHECK(leader.asks(kSecond + 2 + CheckpointSchedule::kAnswerSoonNs, 70 * kMb, 2));
  }
  SECTION("at once while inputs wait for it") {
    CheckpointSchedule::Inputs seen{3 * kSecond, 76 * kMb, 2};
    seen.full = true;
    CHECK_FALSE(schedule.due(seen));
    seen.now_ns += CheckpointSchedule::kAnswerFullNs - 1;
    CHECK_FALSE(schedule.due(seen));
    seen.now_ns += 1;
    REQUIRE(schedule.due(seen));
    schedule.asked(seen);
    CHECK_FALSE(schedule.due(seen));  // this one has as long
  }
  SECTION("but not again and again if CRIU refuses the server") {
    schedule.failed(2 * kSecond, true);
    CHECK_FALSE(leader.asks(2 * kSecond + 1, 70 * kMb, 2));
    CHECK_FALSE(leader.asks(20 * kSecond, 90 * kMb, 3));
    CHECK(leader.asks(63 * kSecond, 91 * kMb, 4));
  }
  SECTION("however often it failed") {
    std::int64_t now = 2 * kSecond;
    for (int i = 0; i < 20; ++i) {
      schedule.failed(now, false);
      now += CheckpointSchedule::kAgainSoonNs;
      CHECK(leader.asks(now, 70 * kMb, 2));
    }
  }
}

TEST_CASE("checkpoint schedule: due while inputs wait, whatever was reported", "[SCHEDULE-2]") {
  CheckpointSchedule schedule({0, 64 * kMb, 0, 128 * kMb});
  CheckpointSchedule::Inputs seen{kSecond, 78 * kMb, 2};
  schedule.taken(66 * kMb, kSecond);  // by a replica that differs
  seen.full = true;
  CHECK_FALSE(schedule.due(seen));
  seen.now_ns += CheckpointSchedule::kAnswerFullNs - 1;
  CHECK_FALSE(schedule.due(seen));
  seen.now_ns += 1;
  SECTION("while they wait") { CHECK(schedule.due(seen)); }
  SECTION("not if the next one was taken") {
    schedule.taken(78 * kMb, seen.now_ns);
    CHECK_FALSE(schedule.due(seen));
  }
  SECTION("not when they no longer wait") {
    seen.full = false;
    CHECK_FALSE(schedule.due(seen));
  }
  SECTION("not if CRIU refuses the server") {
    schedule.failed(seen.now_ns - 1, true);
    CHECK_FALSE(schedule.due(seen));
  }
}

TEST_CASE("checkpoint schedule: another one follows one that fails", "[SCHEDULE-1]") {
  Leader leader({60 * kSecond, 64 * kMb});
  auto& schedule = leader.schedule;
  CHECK_FALSE(leader.asks(1 * kSecond, 0, 0));
  REQUIRE(leader.asks(61 * kSecond, 1000, 1));
  SECTION("soon, and later each time, within bounds, even if clients send nothing more") {
    std::int64_t now = 62 * kSecond, before = 0;
    for (int i = 0; i < 70; ++i) {
      schedule.failed(now, false);
      std::int64_t waited = 0;
      while (waited < 1000 * kSecond && !leader.asks(now + waited, 1000, 1)) waited += kSecond / 4;
      CHECK(waited >= before);
      CHECK(waited <= CheckpointSchedule::kAgainMostNs);
      before = waited;
      now += waited;
    }
    CHECK(before == CheckpointSchedule::kAgainMostNs);
    schedule.taken(1000, now);
    CHECK_FALSE(leader.asks(now + 59 * kSecond, 1000, 1));
  }
  SECTION("on a disk with little room never as late as elsewhere") {
    std::int64_t now = 62 * kSecond;
    for (int i = 0; i < 20; ++i) {
      schedule.failed(now, false);
      now += CheckpointSchedule::kLowSpacingNs;
      CHECK(leader.asks(now, 1000, 1, true));
    }
  }
  SECTION("it is not reported at all") {
    CHECK_FALSE(leader.asks(90 * kSecond, 1000, 1));
    CHECK(leader.asks(91 * kSecond, 1000, 1));
  }
  SECTION("a refusal of CRIU is retried like any other failure") {
    schedule.failed(62 * kSecond, true);
    CHECK_FALSE(leader.asks(100 * kSecond, 1000, 1));
    CHECK_FALSE(leader.asks(121 * kSecond, 1000, 1));
    CHECK(leader.asks(181 * kSecond, 2000, 2));
  }
  SECTION("an older one is not the requested one") {
    schedule.taken(500, 62 * kSecond);
    CHECK(schedule.under_way());
  }
}

TEST_CASE("checkpoint schedule: if none are wanted none is due", "[checkpoint]") {
  Leader leader({0, 0, 5 * kSecond, 128 * kMb});
  leader.schedule.ran(1000, 0);
  leader.schedule.ran(200 * kMb, 100 * kSecond);
  CHECK_FALSE(leader.asks(1 * kSecond, 0, 0));
  CHECK_FALSE(leader.asks(100 * kSecond, 200 * kMb, 10));
}

TEST_CASE("run trail: what was run after a place, and never less", "[checkpoint]") {
  RunTrail trail;
  CHECK(trail.since(0) == 0);
  // 40 minutes: more steps than it keeps.
  constexpr std::int64_t kStepNs = kSecond / 10;
  for (std::int64_t i = 0; i <= 24'000; ++i)
    trail.at(static_cast<std::uint64_t>(i) * 100, i * kStepNs);
  for (std::int64_t i = 0; i <= 24'000; i += 77) {
    const std::int64_t exact = (24'000 - i) * kStepNs;
    const std::int64_t elapsed_ns = trail.since(static_cast<std::uint64_t>(i) * 100);
    CHECK(elapsed_ns >= exact);
    CHECK(elapsed_ns <= exact + 60 * kSecond);
  }
}
