// SPDX-License-Identifier: Apache-2.0
// GOAL    An outage makes none of the server's timers due before the inputs that waited for its
//         end.
// METHOD  One replica's clock; the test is the log, the event loop and the wall clock.
// CHECKS  CLOCK-1, CLOCK-2, CLOCK-3, CLOCK-4; slewing; the wall clock; the timer that mono_at()
//         sets.
#include "proxy/replica/role/virtual_clock.h"

#include <catch2/catch.hpp>

#include "proxy/replica/role/tuning.h"

using namespace crane::replica;

namespace {

constexpr std::int64_t kMs = 1'000'000, kS = 1'000'000'000, kMinute = 60 * kS;
constexpr std::int64_t kNotBefore = std::numeric_limits<std::int64_t>::max();

// A leader whose clock is `kAhead` behind virtual time, when its clock shows one second.
struct Leader {
  static constexpr std::int64_t kAhead = 100 * kS;
  VirtualClock clock;
  std::int64_t mono = kS;

  Leader() {
    clock.committed(mono + kAhead, mono, true);
    clock.lead();
    clock.resume(mono);
    clock.runs(mono, mono);
  }
  // The event loop runs once per millisecond.
  void run(std::int64_t ns) {
    for (const std::int64_t end = mono + ns; mono < end;) {
      mono += kMs;
      clock.runs(mono, mono);
    }
  }
  std::int64_t stamp() { return clock.next_stamp(mono); }
  std::int64_t real() const { return mono + kAhead; }
};

}  // namespace

TEST_CASE("virtual time continues through a change of the leader and never decreases",
          "[clock][CLOCK-1]") {
  VirtualClock clock;
  CHECK(clock.now(7 * kS) == 7 * kS);  // before the first stamp
  clock.committed(10 * kS, 50 * kS, true);
  clock.committed(12 * kS, 51 * kS, true);  // it arrived with less delay
  CHECK(clock.now(60 * kS) == 21 * kS);
  clock.committed(11 * kS, 60 * kS, true);
  CHECK(clock.now(60 * kS) == 21 * kS);
  CHECK(clock.mono_at(21 * kS) == 60 * kS);
  clock.committed(30 * kS, 60 * kS, true);
  CHECK(clock.now(59 * kS) == 30 * kS);
}

TEST_CASE("the first leader of a group begins with its own clock", "[clock]") {
  VirtualClock clock;
  clock.lead();
  CHECK_FALSE(clock.waits_for_inputs());
  CHECK(clock.next_stamp(5 * kS) == 5 * kS);
}

TEST_CASE("a new leader's stamps stay at the last one until its clients were read",
          "[clock][CLOCK-2]") {
  VirtualClock clock;
  clock.committed(100 * kS, kS, true);
  clock.lead();  // the others were lost for 20 s
  REQUIRE(clock.waits_for_inputs());
  CHECK(clock.next_stamp(21 * kS) == 100 * kS);
  CHECK(clock.mono_at(100 * kS + 1) == kNotBefore);
  clock.proposed(21 * kS);
  clock.progressed(21 * kS + kMs, false);
  CHECK(clock.next_stamp(22 * kS) == 100 * kS);
  clock.resume(22 * kS);
  CHECK_FALSE(clock.waits_for_inputs());
  CHECK(clock.next_stamp(22 * kS) == 100 * kS);
}

TEST_CASE("after an outage virtual time is slewed until it has caught up", "[clock][CLOCK-4]") {
  VirtualClock clock;
  clock.committed(100 * kS, kS, true);
  clock.lead();
  clock.resume(21 * kS);  // 20 s behind
  CHECK(clock.behind_ns(21 * kS) == 20 * kS);
  clock.runs(21 * kS, kNotBefore);
  CHECK(clock.now(31 * kS) == 111 * kS);
  CHECK(clock.behind_ns(31 * kS) == 19 * kS);
  CHECK(clock.now(221 * kS) == 320 * kS);
  CHECK(clock.now(300 * kS) == 399 * kS);
  CHECK(clock.behind_ns(300 * kS) == 0);
}

TEST_CASE("what exceeds the bound passes at once, after the inputs", "[clock]") {
  VirtualClock clock;
  clock.committed(100 * kS, kS, true);
  clock.lead();
  const std::int64_t mono = kS + 3600 * kS;
  CHECK(clock.next_stamp(mono) == 100 * kS);
  clock.resume(mono);
  CHECK(clock.behind_ns(mono) == kMinute);
}

TEST_CASE("a timer is set for the moment at which its virtual time is reached", "[clock]") {
  VirtualClock clock;
  clock.committed(100 * kS, kS, true);
  clock.lead();
  clock.resume(3 * kS);  // 2 s behind
  clock.runs(3 * kS, kNotBefore);
  for (const std::int64_t after :
       {std::int64_t{0}, std::int64_t{1}, kMs + 7, 5 * kS, 21 * kS, 22 * kS, 23 * kS, 40 * kS}) {
    const std::int64_t at = clock.mono_at(100 * kS + after);
    CHECK(clock.now(at) >= 100 * kS + after);
    if (after > 0) CHECK(clock.now(at - 2) < 100 * kS + after);
  }
}

TEST_CASE_METHOD(Leader, "an idle leader that intends to sleep sees no outage",
                 "[clock][CLOCK-3]") {
  const std::uint64_t outages = clock.outages();
  clock.runs(mono, mono + kMinute);
  mono += kMinute;
  clock.runs(mono, mono);
  CHECK(stamp() == real());
  clock.runs(mono, kNotBefore);
  mono += 60 * kMinute;
  CHECK(stamp() == real());
  clock.runs(mono, mono);
  CHECK(clock.outages() == outages);
  CHECK_FALSE(clock.waits_for_inputs());
}

TEST_CASE_METHOD(Leader,
                 "a process that was stopped stamps the waiting input with the time of the stop",
                 "[clock][CLOCK-3]") {
  clock.runs(mono, mono + 10 * kMs);
  const std::int64_t before = real();
  mono += 30 * kS;
  CHECK(clock.now(mono) == before + 10 * kMs + kOutageNs);  // even if runs() was not called yet
  clock.runs(mono, mono);
  CHECK(stamp() == before + 10 * kMs + kOutageNs);
  REQUIRE(clock.waits_for_inputs());
  clock.resume(mono);
  run(10 * kMs);
  CHECK(stamp() == before + 10 * kMs + kOutageNs + 11 * kMs);
}

TEST_CASE_METHOD(Leader, "stamps stop if nothing was committed, before the next round notices it",
                 "[clock][CLOCK-3]") {
  clock.runs(mono, kNotBefore);
  clock.proposed(mono);
  const std::int64_t before = real();
  mono += 7 * kS;
  CHECK(stamp() == before + kOutageNs);
}

TEST_CASE_METHOD(Leader, "time stops while nothing is committed, until an entry is",
                 "[clock][CLOCK-3]") {
  clock.proposed(mono);
  const std::int64_t before = stamp();
  run(7 * kS);
  CHECK(stamp() == before + kOutageNs);
  clock.proposed(mono);
  CHECK_FALSE(clock.waits_for_inputs());  // the outage is not over
  run(7 * kS);
  clock.progressed(mono, true);
  REQUIRE(clock.waits_for_inputs());
  CHECK(stamp() == before + kOutageNs);
  clock.resume(mono);
  CHECK(stamp() == before + kOutageNs);
  clock.progressed(mono, false);
  run(10 * kMs);
  CHECK(stamp() == before + kOutageNs + 11 * kMs);
}

TEST_CASE_METHOD(Leader, "a commit that ends an unnoticed outage stops the clock after it",
                 "[clock][CLOCK-3]") {
  clock.proposed(mono);
  const std::int64_t before = real();
  clock.runs(mono, mono + 30 * kS);
  mono += 30 * kS;
  clock.progressed(mono, false);
  CHECK(stamp() == before + kOutageNs);
  CHECK(clock.waits_for_inputs());
}

TEST_CASE_METHOD(Leader, "commits that are slow but arrive are no outage", "[clock]") {
  const std::uint64_t outages = clock.outages();
  for (int i = 0; i < 50; ++i) {
    clock.proposed(mono);
    run(kOutageNs);
    clock.progressed(mono, true);
  }
  CHECK(stamp() == real());
  CHECK(clock.outages() == outages);
}

TEST_CASE_METHOD(Leader, "an outage while clients are read starts the reading again", "[clock]") {
  clock.runs(mono, mono);
  mono += 30 * kS;
  clock.runs(mono, mono);
  REQUIRE(clock.waits_for_inputs());
  const std::int64_t stopped = stamp();
  const std::uint64_t first = clock.outages();
  mono += 30 * kS;
  clock.runs(mono, mono);
  CHECK(clock.outages() == first + 1);
  CHECK(stamp() == stopped);
}

TEST_CASE_METHOD(Leader, "a deposed leader's clock is not stopped", "[clock]") {
  clock.proposed(mono);
  run(kS);
  clock.follow();
  CHECK_FALSE(clock.waits_for_inputs());
  CHECK(clock.now(mono) == real());
  CHECK(clock.mono_at(real()) == mono);
}

TEST_CASE("a group that begins again after its log catches up with the wall clock", "[clock]") {
  VirtualClock clock;  // all replicas were lost for 20 s, and run the log again at once
  clock.committed(50 * kS, 900 * kS, false);
  clock.committed(100 * kS, 900 * kS, false);
  clock.lead();
  clock.aim(120 * kS, 900 * kS);
  CHECK(clock.next_stamp(900 * kS) == 100 * kS);
  clock.resume(900 * kS);
  CHECK(clock.behind_ns(900 * kS) == 20 * kS);
}

TEST_CASE("a wrong wall clock moves no replica that has followed a reign", "[clock]") {
  VirtualClock clock;
  clock.committed(100 * kS, kS, true);
  clock.lead();
  clock.aim(103 * kS, kS);
  CHECK(clock.behind_ns(kS) == 3 * kS);
  clock.aim(3600 * kS, kS);
  CHECK(clock.behind_ns(kS) == 3 * kS);
  clock.aim(kS, kS);
  CHECK(clock.behind_ns(kS) == 3 * kS);
}
