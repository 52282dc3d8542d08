// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/lazy_timer.h"

#include <catch2/catch.hpp>

using crane::consensus::LazyTimer;

namespace {

constexpr std::uint64_t kMs = 1'000'000;

}  // namespace

TEST_CASE("lazy timer: an earlier time is set at once", "[fabric][TIMER-1]") {
  LazyTimer timer;
  CHECK(timer.set_ns() == 0);
  std::uint64_t now = 100 * kMs;
  for (std::uint64_t due = now + 50 * kMs; due > now; due -= kMs / 10) {
    REQUIRE(timer.due(due, now));
    REQUIRE(timer.set_ns() == due);
  }
  CHECK_FALSE(timer.due(timer.set_ns(), now));
  timer.fired();
  CHECK(timer.due(0, now));
  CHECK(timer.set_ns() != 0);
}

TEST_CASE("lazy timer: a later time is set if that saves a wake-up", "[fabric]") {
  LazyTimer timer;
  std::uint64_t now = 100 * kMs;
  CHECK(timer.due(now + 2 * kMs, now));
  CHECK_FALSE(timer.due(now + 2 * kMs + LazyTimer::kLaterByNs - 1, now));
  CHECK(timer.due(now + 250 * kMs, now));
  CHECK(timer.set_ns() == now + 250 * kMs);
  timer.fired();
  CHECK(timer.due(now + 500 * kMs, now));
  CHECK(timer.set_ns() == now + 500 * kMs);
}

TEST_CASE("lazy timer: a busy loop sets it later from time to time", "[fabric]") {
  LazyTimer timer;
  std::uint64_t now = 100 * kMs, later = 0;
  for (const std::uint64_t end = now + 10 * kMs; now < end; now += kMs / 100) {
    timer.due(now + 2 * kMs, now);  // an answer is owed
    later += timer.due(now + 250 * kMs, now) ? 1 : 0;
  }
  CHECK(later == 10 * kMs / LazyTimer::kLaterEveryNs);
}
