// SPDX-License-Identifier: Apache-2.0
// GOAL    The log behind the newest checkpoint is not overwritten while a next one can come.
// METHOD  The test's clock, log and checkpoints.
// CHECKS  KEEP-1; each way out: a newer checkpoint, a server that CRIU refuses, attempts in vain, a
//         server that fills the rest by itself.
#include "proxy/node/recovery/log_keeper.h"

#include <catch2/catch.hpp>

using namespace crane;
using namespace crane::node;

namespace {

constexpr std::uint64_t kRing = 128U << 20;
constexpr std::uint64_t kPart = kRing / LogKeeper::kParts;
constexpr std::uint64_t kFull = kPart * LogKeeper::kFullParts;
constexpr std::int64_t kNow = 1'000'000'000'000;

LogKeeper::Seen at(std::uint64_t log_end) {
  LogKeeper::Seen seen;
  seen.log_end = log_end;
  return seen;
}
consensus::LogPlace place(std::uint64_t index, std::uint64_t pos) {
  return {{View{1}, Index{index}}, pos};
}

}  // namespace

TEST_CASE("log keeper: inputs wait when the log since the newest checkpoint is long", "[KEEP-1]") {
  LogKeeper keeper(kRing);
  (void)keeper.step(at(kFull - 1));
  CHECK_FALSE(keeper.full());
  (void)keeper.step(at(kFull));
  CHECK(keeper.full());
  CHECK(keeper.keeps());
}

TEST_CASE("log keeper: a newer checkpoint makes room", "[KEEP-1]") {
  LogKeeper keeper(kRing);
  auto seen = at(kFull / 2);
  seen.newest = place(7, 1000);
  CHECK_FALSE(keeper.step(seen).keep);  // not compared yet
  seen.trusted = true;
  CHECK(keeper.step(seen).keep == place(7, 1000));
  CHECK_FALSE(keeper.step(seen).keep);
  (void)keeper.step(at(kFull + 1000));
  REQUIRE(keeper.full());
  auto more = at(kFull + 2000);
  more.newest = place(9, kFull);
  const auto actions = keeper.step(more);  // there is no other way
  CHECK(actions.keep == place(9, kFull));
  CHECK_FALSE(keeper.full());
  more.newest = place(8, 2000);  // an older one
  CHECK_FALSE(keeper.step(more).keep);
}

TEST_CASE("log keeper: a checkpoint that helps too little gives the log up, and says so",
          "[KEEP-1]") {
  LogKeeper keeper(kRing);
  (void)keeper.step(at(kFull));
  auto seen = at(kFull + 2 * kPart);
  seen.newest = place(7, kPart);
  const auto actions = keeper.step(seen);
  CHECK_FALSE(actions.keep);
  CHECK(actions.gives_up);
  CHECK_FALSE(keeper.full());
}

TEST_CASE("log keeper: a checkpoint ahead of the own log waits until that reaches it", "[KEEP-1]") {
  LogKeeper keeper(kRing);
  auto seen = at(kPart);
  seen.newest = place(9, 2 * kPart);
  seen.trusted = true;
  CHECK_FALSE(keeper.step(seen).keep);
  seen.log_end = 2 * kPart;
  CHECK(keeper.step(seen).keep);
}

TEST_CASE("log keeper: the log is given up where no checkpoint comes", "[KEEP-1]") {
  LogKeeper keeper(kRing);
  auto seen = at(kFull);
  SECTION("CRIU refuses the server") {
    seen.refused = true;
    CHECK(keeper.step(seen).gives_up);
  }
  SECTION("attempts in vain") {
    seen.given_up = 5;
    CHECK_FALSE(keeper.step(seen).gives_up);
    seen.given_up = 4 + LogKeeper::kAttempts;
    CHECK_FALSE(keeper.step(seen).gives_up);
    seen.given_up = 5 + LogKeeper::kAttempts;
    CHECK(keeper.step(seen).gives_up);
  }
  SECTION("the server's own entries fill the rest") {
    CHECK_FALSE(keeper.step(at(kPart * LogKeeper::kBrimParts - 1)).gives_up);
    CHECK(keeper.step(at(kPart * LogKeeper::kBrimParts)).gives_up);
  }
  CHECK_FALSE(keeper.keeps());
  CHECK_FALSE(keeper.full());
  CHECK_FALSE(keeper.step(at(2 * kRing)).gives_up);
  auto later = at(2 * kRing);
  later.newest = place(50, 2 * kRing - 100);
  later.trusted = true;
  CHECK(keeper.step(later).keep);
  CHECK(keeper.keeps());
}

TEST_CASE("log keeper: it looks for checkpoints while there is something to gain") {
  LogKeeper keeper(kRing);
  CHECK_FALSE(keeper.looks(kRing / 16 - 1, kNow));
  CHECK(keeper.looks(kRing / 16, kNow));
  CHECK_FALSE(keeper.looks(kRing / 16, kNow + 1));
  CHECK(keeper.looks(kRing / 16, kNow + LogKeeper::kLookNs));
  LogKeeper off(0);
  CHECK_FALSE(off.looks(kRing, kNow));
  CHECK_FALSE(off.step(at(4 * kRing)).gives_up);
}
