// SPDX-License-Identifier: Apache-2.0
// GOAL    The send times of an open loop do not depend on answers, and a rate that was not held is
//         reported.
// METHOD  Hand-written cases; random rates, compared with a plain division.
// CHECKS  PACE-1; lateness(); is_held().
// REPLAY  RC_PARAMS, which a failure prints
#include "eval/latency/schedule.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace {

using namespace latency;
constexpr Nanoseconds kBegin = 5'000'000'000;

TEST_CASE("Send times are one interval apart from the start") {
  const Schedule s(1000, kBegin, kBegin + 2'000'000'000);
  CHECK(s.count() == 2000);
  CHECK(s.time_of(0) == kBegin);
  CHECK(s.time_of(1) == kBegin + 1'000'000);
  CHECK(s.time_of(1999) == kBegin + 1'999'000'000);
}

TEST_CASE("Rounding errors of an interval do not accumulate") {
  const Schedule s(300'000, kBegin, kBegin + 10'000'000'000);
  CHECK(s.count() == 3'000'000);
  CHECK(s.time_of(2'999'999) == kBegin + 9'999'996'667);
}

TEST_CASE("Every second of a schedule contains as many requests as the rate") {
  CHECK(rc::check([] {
    const int rate = *rc::gen::inRange(1, 500'000);
    const int seconds = *rc::gen::inRange(1, 60);
    const Schedule s(rate, kBegin, kBegin + seconds * Nanoseconds{1'000'000'000});
    RC_ASSERT(s.count() == static_cast<std::uint64_t>(rate) * static_cast<unsigned>(seconds));
    for (int second = 0; second < seconds; ++second) {
      const auto first = static_cast<std::uint64_t>(second) * static_cast<unsigned>(rate);
      RC_ASSERT(s.time_of(first) == kBegin + second * Nanoseconds{1'000'000'000});
    }
  }));
}

TEST_CASE("A request is late if it waited for the client, not if it waited for a connection") {
  CHECK(lateness(100, 0, 130) == 30);    // a connection was free at its time
  CHECK(lateness(100, 500, 530) == 30);  // no connection was free before 500
  CHECK(lateness(100, 500, 500) == 0);
}

TEST_CASE("A rate is held if 99 of 100 requests were answered within the window") {
  CHECK(is_held({.due = 1000, .answered = 990, .answered_in_time = 990}));
  CHECK_FALSE(is_held({.due = 1000, .answered = 989, .answered_in_time = 989}));
  CHECK_FALSE(is_held({.due = 1000, .answered = 1000, .answered_in_time = 900}));
  CHECK_FALSE(is_held({}));
}

}  // namespace
