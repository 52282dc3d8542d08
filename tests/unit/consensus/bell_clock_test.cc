// SPDX-License-Identifier: Apache-2.0
// GOAL    BellClock (consensus/driver/bell_clock.h) waits for an entry that carries the commit
//         index, never longer than its limit; without a hold bells keep their spacing, and a
//         follower waits for nothing.
// CHECKS  DRIVER-B1.
// REPLAY  CRANE_SEED=<seed> repeats the random case.
#include "consensus/driver/bell_clock.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <vector>

namespace crane::consensus {
namespace {

constexpr std::uint64_t kHold = 1000;
constexpr std::uint64_t kNever = BellClock::kNever;

}  // namespace

TEST_CASE("bell clock: an entry that carries the commit index leaves nothing to send") {
  BellClock c(0, kHold);
  c.look(Index{4}, Index{5}, 100);
  CHECK(c.due_ns(true) == 100 + kHold);
  c.look(Index{5}, Index{5}, 300);
  CHECK(c.due_ns(true) == kNever);
  c.look(Index{5}, Index{6}, 400);
  CHECK(c.due_ns(true) == 400 + kHold);
  c.look(Index{6}, Index{7}, 900);  // carried, and more is committed since
  CHECK(c.due_ns(true) == 900 + kHold);
}

TEST_CASE("bell clock: a commit index that no entry carries is sent in time") {
  BellClock c(0, kHold);
  c.look(Index{4}, Index{5}, 100);
  c.look(Index{4}, Index{9}, 900);
  CHECK(c.due_ns(true) == 100 + kHold);
  c.rang(100 + kHold);
  CHECK(c.due_ns(true) == kNever);
}

TEST_CASE(
    "bell clock: without a hold bells keep their spacing, the first after a pause is immediate") {
  BellClock c(300, 0);
  CHECK(c.due_ns(true) == kNever);
  c.moved();
  CHECK(c.due_ns(true) == 0);
  c.rang(1000);
  CHECK(c.due_ns(true) == kNever);
  c.moved();
  CHECK(c.due_ns(true) == 1300);
  CHECK(c.due_ns(false) == 0);
}

TEST_CASE("bell clock: no commit index waits for longer than two holds (DRIVER-B1)") {
  const char* const given = std::getenv("CRANE_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  INFO("CRANE_SEED=" << seed);
  std::mt19937_64 random(seed);
  BellClock c(0, kHold);
  std::uint64_t known = 0;
  std::vector<std::uint64_t> committed_at;  // by index
  for (std::uint64_t now = 1; now < 200'000; ++now) {
    if (random() % 50 == 0) committed_at.push_back(now);
    if (random() % 400 == 0 && known < committed_at.size())
      known += random() % (committed_at.size() - known + 1);
    c.look(Index{known}, Index{committed_at.size()}, now);
    if (now >= c.due_ns(true)) {
      known = committed_at.size();
      c.rang(now);
    }
    if (known < committed_at.size()) REQUIRE(now - committed_at[known] <= 2 * kHold);
  }
}

}  // namespace crane::consensus
