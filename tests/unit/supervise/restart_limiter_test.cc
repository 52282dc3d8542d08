// SPDX-License-Identifier: Apache-2.0
// GOAL    A lost replica always has a next attempt, and soon (RETURN-1, RETURN-2).
// METHOD  Sequences of ends on a clock of the test: hand-written ones and random ones.
// CHECKS  The pauses; a long run, and an operator, reset them.
#include "runtime/supervise/restart_limiter.h"

#include <catch2/catch.hpp>
#include <random>

using crane::supervise::RestartLimiter;

namespace {
constexpr std::int64_t kSecond = 1'000;

std::int64_t pause_after_end(RestartLimiter& returns, std::int64_t now,
                             RestartLimiter::End how = RestartLimiter::End::kKilled) {
  returns.ended(how, now);
  return returns.due_ms() - now;
}
}  // namespace

TEST_CASE("returns: at once, then 1, 2, 4 .. 60 s", "[supervise]") {
  RestartLimiter returns;
  std::int64_t now = 1'000'000;
  for (const std::int64_t pause : {0, 1, 2, 4, 8, 16, 32, 60, 60, 60}) {
    CHECK(pause_after_end(returns, now) == pause * kSecond);
    CHECK(returns.planned());
    now = returns.due_ms();
    CHECK(returns.due(now));
    returns.begins(now);
    CHECK_FALSE(returns.planned());
    now += 100;
  }
  now += RestartLimiter::kLastsMs;
  CHECK(pause_after_end(returns, now) == 0);
}

TEST_CASE("returns: a replica that requested its restart has not failed", "[supervise]") {
  RestartLimiter returns;
  CHECK(pause_after_end(returns, 10, RestartLimiter::End::kAsked) == 0);
  CHECK(returns.in_a_row() == 0);
  CHECK(pause_after_end(returns, 20, RestartLimiter::End::kFailed) == 0);
  CHECK(returns.failed() == 1);
  CHECK(pause_after_end(returns, 30, RestartLimiter::End::kKilled) == kSecond);
  CHECK(returns.failed() == 0);
  // Regardless of earlier ends: the checkpoint exists.
  CHECK(pause_after_end(returns, 40, RestartLimiter::End::kAsked) == 0);
  CHECK(returns.in_a_row() == 2);
}

TEST_CASE("returns: a replica that failed often and was just restarted still counts as failing",
          "[supervise]") {
  RestartLimiter returns;
  for (int i = 0; i < 5; ++i) returns.ended(RestartLimiter::End::kFailed, 100);
  CHECK(returns.fails(5, 100));
  CHECK_FALSE(returns.fails(6, 100));
  returns.begins(200);
  CHECK(returns.fails(5, 300));
  CHECK_FALSE(returns.fails(5, 300 + RestartLimiter::kLastsMs));
}

TEST_CASE("returns: an operator's restart does not wait", "[supervise]") {
  RestartLimiter returns;
  for (int i = 0; i < 9; ++i) returns.ended(RestartLimiter::End::kKilled, 10);
  CHECK_FALSE(returns.due(10));
  returns.hurry(10);
  CHECK(returns.due(10));
  returns.forget();
  CHECK_FALSE(returns.planned());
}

TEST_CASE("returns: after any sequence of ends the next attempt is within a minute",
          "[supervise]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  RestartLimiter returns;
  std::int64_t now = 1;
  for (int i = 0; i < 20'000; ++i) {
    now += random() % 40'000;
    returns.ended(static_cast<RestartLimiter::End>(random() % 3), now);
    REQUIRE(returns.planned());
    REQUIRE(returns.due_ms() - now <= RestartLimiter::kPauseMostMs);  // RETURN-2
    if (random() % 2 == 0) returns.begins(now = returns.due_ms());
  }
}
