// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/recovery/checkpoint_schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>

using crane::node::CheckpointSchedule;

namespace {
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMb = 1U << 20;
}  // namespace

TEST_CASE("checkpoint schedule: by the clock, if clients have done something", "[checkpoint]") {
  CheckpointSchedule schedule(60 * kSecond, 64 * kMb);
  CHECK_FALSE(schedule.due(1 * kSecond, 0, 0));
  CHECK_FALSE(schedule.due(61 * kSecond, 1000, 0));
  CHECK_FALSE(schedule.due(100 * kSecond, 2000, 5));
  CHECK(schedule.due(121 * kSecond, 2000, 5));
  CHECK_FALSE(schedule.due(181 * kSecond, 3000, 5));
  CHECK(schedule.due(241 * kSecond, 3000, 6));
}

TEST_CASE("checkpoint schedule: a log that grows fast does not wait for the clock",
          "[checkpoint]") {
  CheckpointSchedule schedule(60 * kSecond, 64 * kMb);
  CHECK_FALSE(schedule.due(1 * kSecond, 0, 0));
  CHECK_FALSE(schedule.due(2 * kSecond, 70 * kMb, 1));  // too soon
  CHECK(schedule.due(4 * kSecond, 70 * kMb, 2));
  CHECK_FALSE(schedule.due(10 * kSecond, 100 * kMb, 3));
  CHECK(schedule.due(11 * kSecond, 134 * kMb, 4));
}

TEST_CASE("checkpoint schedule: an idle server's entries do not pile up without end",
          "[checkpoint]") {
  CheckpointSchedule schedule(60 * kSecond, 64 * kMb);
  CHECK_FALSE(schedule.due(1 * kSecond, 0, 0));
  // A week of ten entries a second, 80 bytes each, looked at every second.
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
  CHECK(taken <= 58);  // one in three hours
}

TEST_CASE("checkpoint schedule: a disk with little room has its log cut soon", "[checkpoint]") {
  CheckpointSchedule schedule(60 * kSecond, 64 * kMb);
  CHECK_FALSE(schedule.due(1 * kSecond, 0, 0, true));
  CHECK_FALSE(schedule.due(2 * kSecond, 1000, 1, true));  // nothing to cut
  CHECK(schedule.due(3 * kSecond, 2 * kMb, 2, true));
  CHECK_FALSE(schedule.due(4 * kSecond, 4 * kMb, 3, true));  // not one after the other
  CHECK(schedule.due(8 * kSecond, 4 * kMb, 3, true));
  CHECK_FALSE(schedule.due(20 * kSecond, 8 * kMb, 4, false));
  CheckpointSchedule by_nothing(0, 0);
  CHECK_FALSE(by_nothing.due(1 * kSecond, 0, 0, true));
  CHECK_FALSE(by_nothing.due(100 * kSecond, 1000 * kMb, 10, true));
}

TEST_CASE("checkpoint schedule: what was not to be taken for the log is not", "[checkpoint]") {
  CheckpointSchedule by_clock(60 * kSecond, 0);
  CHECK_FALSE(by_clock.due(1 * kSecond, 0, 0));
  CHECK_FALSE(by_clock.due(100 * kSecond, 1000 * kMb, 0));
  CheckpointSchedule by_nothing(0, 0);
  CHECK_FALSE(by_nothing.due(1 * kSecond, 0, 0));
  CHECK_FALSE(by_nothing.due(100 * kSecond, 1000 * kMb, 10));
}
