// SPDX-License-Identifier: Apache-2.0
// GOAL    The log after the newest checkpoint is not overwritten while a next one can be taken.
// METHOD  The test's clock, log and checkpoints.
// CHECKS  KEEP-1; each exit: a newer checkpoint, a server that CRIU refuses, failed attempts, a
//         server whose own entries fill the rest.
#include "proxy/replica/recovery/log_keeper.h"

#include <catch2/catch.hpp>

using namespace crane;
using namespace crane::replica;

namespace {

constexpr std::uint64_t kRing = 128U << 20;
constexpr std::uint64_t kPart = kRing / LogKeeper::kParts;
constexpr std::uint64_t kFull = kPart * LogKeeper::kFullParts;
constexpr std::int64_t kNow = 1'000'000'000'000;

LogKeeper::Inputs at(std::uint64_t log_end) {
  LogKeeper::Inputs seen;
  seen.log_end = log_end;
  return seen;
}
consensus::LogPlace place(std::uint64_t index, std::uint64_t pos) {
  return {{View{1}, Index{index}}, pos};
}
// The keeper looked, and found `newest`.
LogKeeper::Inputs finds(std::uint64_t log_end, consensus::LogPlace newest,
                        bool distrusted = false) {
  LogKeeper::Inputs seen = at(log_end);
  seen.looked = true;
  seen.newest = {newest, distrusted};
  return seen;
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
  CHECK_FALSE(keeper.step(finds(kFull / 2, place(7, 1000))).keep);  // not compared yet
  auto compared = at(kFull / 2);
  compared.compared = Index{6};
  CHECK_FALSE(keeper.step(compared).keep);
  compared.compared = Index{7};
  CHECK(keeper.step(compared).keep == place(7, 1000));  // without another look
  CHECK_FALSE(keeper.step(compared).keep);
  (void)keeper.step(at(kFull + 1000));
  REQUIRE(keeper.full());
  const auto actions = keeper.step(finds(kFull + 2000, place(9, kFull)));  // there is no other way
  CHECK(actions.keep == place(9, kFull));
  CHECK_FALSE(keeper.full());
  auto older = finds(kFull + 2000, place(8, 2000));
  older.compared = Index{9};
  CHECK_FALSE(keeper.step(older).keep);
}

TEST_CASE("log keeper: a distrusted checkpoint makes room only if inputs wait", "[KEEP-1]") {
  LogKeeper keeper(kRing);
  auto seen = finds(kFull / 2, place(7, 1000), true);
  seen.compared = Index{9};
  CHECK_FALSE(keeper.step(seen).keep);
  (void)keeper.step(at(kFull));
  REQUIRE(keeper.full());
  CHECK(keeper.step(at(kFull)).keep == place(7, 1000));
}

TEST_CASE("log keeper: after a checkpoint that makes little room, inputs wait for the next one",
          "[KEEP-1]") {
  LogKeeper keeper(kRing);
  auto seen = at(kFull);
  seen.given_up = 5;
  (void)keeper.step(seen);
  seen = finds(kFull + 2 * kPart, place(7, kPart));
  seen.given_up = 7;
  auto actions = keeper.step(seen);
  CHECK(actions.keep == place(7, kPart));
  CHECK_FALSE(actions.discards_log);
  CHECK(keeper.full());
  // Attempts count from then on.
  seen = at(kFull + 2 * kPart);
  seen.given_up = 6 + LogKeeper::kAttempts;
  CHECK_FALSE(keeper.step(seen).discards_log);
  seen.given_up = 7 + LogKeeper::kAttempts;
  CHECK(keeper.step(seen).discards_log);
}

TEST_CASE(
    "log keeper: after a checkpoint that helps too little the log is given up, and this is "
    "reported",
    "[KEEP-1]") {
  LogKeeper keeper(kRing);
  (void)keeper.step(at(kFull));
  const auto actions = keeper.step(finds(kPart * (LogKeeper::kBrimParts + 1), place(7, kPart)));
  CHECK_FALSE(actions.keep);
  CHECK(actions.discards_log);
  CHECK_FALSE(keeper.full());
}

TEST_CASE("log keeper: a checkpoint ahead of this replica's log makes room at once", "[KEEP-1]") {
  LogKeeper keeper(kRing);
  CHECK_FALSE(keeper.step(at(kFull)).keep);
  const auto ahead = place(9, kFull + kPart);
  CHECK(keeper.step(finds(kFull, ahead)).keep->pos == kFull + kPart);
  CHECK_FALSE(keeper.full());
}

TEST_CASE("log keeper: the log is given up if no checkpoint comes", "[KEEP-1]") {
  LogKeeper keeper(kRing);
  auto seen = at(kFull);
  SECTION("no server that could be dumped advances") {
    seen.followers_stalled = true;
    seen.log_end = kFull - 1;
    CHECK_FALSE(keeper.step(seen).discards_log);  // inputs do not wait yet
    seen.log_end = kFull;
    CHECK(keeper.step(seen).discards_log);
  }
  SECTION("CRIU refuses the server") {
    seen.refused = true;
    CHECK(keeper.step(seen).discards_log);
  }
  SECTION("failed attempts") {
    seen.given_up = 5;
    CHECK_FALSE(keeper.step(seen).discards_log);
    seen.given_up = 4 + LogKeeper::kAttempts;
    CHECK_FALSE(keeper.step(seen).discards_log);
    seen.given_up = 5 + LogKeeper::kAttempts;
    CHECK(keeper.step(seen).discards_log);
  }
  SECTION("the server's own entries fill the rest") {
    CHECK_FALSE(keeper.step(at(kPart * LogKeeper::kBrimParts - 1)).discards_log);
    CHECK(keeper.step(at(kPart * LogKeeper::kBrimParts)).discards_log);
  }
  CHECK_FALSE(keeper.keeps());
  CHECK_FALSE(keeper.full());
  CHECK_FALSE(keeper.step(at(2 * kRing)).discards_log);
  auto later = finds(2 * kRing, place(50, 2 * kRing - 100));
  later.compared = Index{50};
  CHECK(keeper.step(later).keep);
  CHECK(keeper.keeps());
}

TEST_CASE("log keeper: it looks for checkpoints while that can help") {
  LogKeeper keeper(kRing);
  CHECK_FALSE(keeper.looks(kRing / 16 - 1, kNow));
  CHECK(keeper.looks(kRing / 16, kNow));
  CHECK_FALSE(keeper.looks(kRing / 16, kNow + LogKeeper::kLookNs - 1));
  CHECK(keeper.looks(kRing / 16, kNow + LogKeeper::kLookNs));  // a note may be lost
  LogKeeper off(0);
  CHECK_FALSE(off.looks(kRing, kNow));
  CHECK_FALSE(off.step(at(4 * kRing)).discards_log);
}

TEST_CASE("log keeper: a note is a reason to look at once, and one time") {
  LogKeeper keeper(kRing);
  REQUIRE(keeper.looks(kRing / 16, kNow));
  keeper.on_report();
  CHECK_FALSE(keeper.looks(kRing / 16 - 1, kNow + 1));  // the note is kept until it matters
  CHECK(keeper.looks(kRing / 16, kNow + 1));
  CHECK_FALSE(keeper.looks(kRing / 16, kNow + LogKeeper::kLookNs));
}

TEST_CASE("log keeper: it looks often while inputs wait") {
  LogKeeper keeper(kRing);
  (void)keeper.step(at(kFull));
  REQUIRE(keeper.full());
  REQUIRE(keeper.looks(kFull, kNow));
  CHECK_FALSE(keeper.looks(kFull, kNow + LogKeeper::kLookFullNs - 1));
  CHECK(keeper.looks(kFull, kNow + LogKeeper::kLookFullNs));
}
