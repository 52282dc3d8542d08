// SPDX-License-Identifier: Apache-2.0
// GOAL    A group leads again soon after its replicas are fit, however long all were not.
// METHOD  All of a group abdicate, time passes while their applications tell their lag, some are
//         fit again.
// CHECKS  C6: of Abdicate, Fit, Lags and Tick; an unfit voter grants; logs that were cut; of two
//         whose servers lag the one leads that is further, and one that yields does so for a while.
#include <catch2/catch.hpp>
#include <initializer_list>

#include "tests/unit/consensus/led_group.h"

using namespace crane;
using namespace crane::consensus::core;

namespace {

constexpr std::uint64_t kMs = 1'000'000;
// An idle period until a campaign is planned, the head start of others, and the election.
constexpr std::uint64_t kSoonNs = 350 * kMs;
constexpr std::uint64_t kLongNs = 20'000 * kMs;
// Applications that fall behind tell it more often than an idle replica has a Tick.
constexpr std::uint64_t kTellsEveryNs = 20 * kMs;

using Ids = std::initializer_list<unsigned>;

struct UnfitGroup : LedGroup {
  explicit UnfitGroup(Durability durability = Durability::kMemory)
      : LedGroup(durability, 100 * kMs) {}
  void unfit(Ids ids = {0, 1, 2}) {
    for (const unsigned i : ids) step(i, Abdicate{});
    settle();
  }
  void fit(Ids ids = {0, 1, 2}) {
    for (const unsigned i : ids) step(i, ServerHealthy{});
    settle();
  }
  // All processes end, and start again on what they had, unfit.
  void begin_again() {
    for (unsigned i = 0; i < 3; ++i) stop(i);
    for (unsigned i = 0; i < 3; ++i) start(i, StartKind::kSurvived);
    for (unsigned i = 0; i < 3; ++i) unfit({i});
  }
  void fall_behind_for(std::uint64_t ns) {
    for (const std::uint64_t end = now_ns + ns; now_ns < end;) {
      lag_ns += kTellsEveryNs;
      for (unsigned i = 0; i < 3; ++i) {
        if (nodes[i].core) step(i, ServerLagging{lag_ns});
      }
      run_for(kTellsEveryNs);
    }
  }
  void check_it_serves() {
    REQUIRE(leader() >= 0);
    const auto who = static_cast<unsigned>(leader());
    const Index before = nodes[who].core->committed();
    REQUIRE(propose(who).ok());
    CHECK(nodes[who].core->committed() > before);
  }

  std::uint64_t lag_ns = 0;
};

}  // namespace

TEST_CASE("eligible: replicas that were unfit for long elect a leader soon", "[R=3][C6]") {
  const auto durability = GENERATE(Durability::kMemory, Durability::kDisk);
  UnfitGroup g(durability);
  g.begin_again();
  g.run_for(kLongNs);
  REQUIRE(g.leader() == -1);
  SECTION("all at once") { g.fit(); }
  SECTION("one after the other") {
    for (unsigned i = 0; i < 3; ++i) {
      g.fit({2 - i});
      g.run_for(20 * kMs);
    }
  }
  SECTION("one alone: the unfit ones vote for it") {
    g.fit({1});
    g.run_for(kSoonNs);
    CHECK(g.leader() == 1);
  }
  g.run_for(kSoonNs);
  g.check_it_serves();
}

TEST_CASE("eligible: applications that tell their lag again and again put no election off",
          "[R=3][C6]") {
  const auto durability = GENERATE(Durability::kMemory, Durability::kDisk);
  UnfitGroup g(durability);
  g.begin_again();
  g.fall_behind_for(kLongNs);
  REQUIRE(g.leader() == -1);
  SECTION("all are fit") { g.fit(); }
  SECTION("one is") { g.fit({2}); }
  g.fall_behind_for(kSoonNs);
  g.check_it_serves();
}

TEST_CASE("eligible: behind the cut of their stores, too", "[R=3, disk][C6][CORE-D5]") {
  UnfitGroup g(Durability::kDisk);
  for (unsigned i = 0; i < 3; ++i) {
    g.step(i, Checkpointed{Index{15}});
    g.calm();
  }
  for (unsigned i = 0; i < 3; ++i) REQUIRE(g.nodes[i].dropped == Index{15});
  g.begin_again();
  g.fall_behind_for(kLongNs);
  REQUIRE(g.leader() == -1);
  g.fit();
  g.fall_behind_for(kSoonNs);
  g.check_it_serves();
}

TEST_CASE("eligible: again and again", "[R=3][C6]") {
  UnfitGroup g;
  for (int round = 0; round < 20; ++round) {
    g.unfit();
    g.fall_behind_for(500 * kMs);
    REQUIRE(g.leader() == -1);
    g.fit();
    g.fall_behind_for(kSoonNs);
    g.check_it_serves();
  }
}

TEST_CASE("eligible: an unfit replica seeks nothing while the others are away", "[R=3][C6]") {
  UnfitGroup g;
  g.unfit({1, 2});
  g.kill(0);
  g.fall_behind_for(2000 * kMs);
  CHECK(g.leader() == -1);
  g.fit({2});
  g.fall_behind_for(kSoonNs);
  CHECK(g.leader() == 2);
}

TEST_CASE("eligible: of two servers that lag the one leads that has run more", "[R=3][C6]") {
  const auto durability = GENERATE(Durability::kMemory, Durability::kDisk);
  const unsigned further = GENERATE(1U, 2U);
  UnfitGroup g(durability);
  const unsigned other = 3 - further;
  g.step(further, ServerLagging{1000 * kMs, Index{15}});
  g.step(other, ServerLagging{1000 * kMs, Index{3}});
  g.kill(0);
  g.run_for(kSoonNs);
  CHECK(g.leader() == static_cast<int>(further));
  g.check_it_serves();
}

TEST_CASE("eligible: all start again, and the server that is furthest leads", "[R=3][C6]") {
  UnfitGroup g;
  const unsigned furthest = GENERATE(0U, 1U, 2U);
  for (unsigned i = 0; i < 3; ++i) g.stop(i);
  for (unsigned i = 0; i < 3; ++i) {
    g.start(i, StartKind::kSurvived);
    g.step(i, ServerLagging{1000 * kMs, Index{i == furthest ? 9U : i}});
  }
  for (unsigned i = 0; i < 3; ++i) {
    for (unsigned k = 0; k < 3; ++k) {
      if (i != k) g.step(i, PeerUp{ReplicaId{static_cast<std::uint8_t>(k)}});
    }
  }
  g.run_for(kSoonNs);
  CHECK(g.leader() == static_cast<int>(furthest));
  g.check_it_serves();
}

TEST_CASE("eligible: a replica that yields leads when the other one cannot", "[R=3][C6]") {
  UnfitGroup g;
  g.step(1, ServerLagging{1000 * kMs, Index{3}});
  g.step(2, ServerLagging{1000 * kMs, Index{15}});
  SECTION("as it is stopped") { g.nodes[2].stopped = true; }
  SECTION("as it abdicated before") { g.unfit({2}); }
  g.kill(0);
  g.run_for(kSoonNs);
  g.nodes[2].stopped = false;
  g.run_for(kSoonNs);
  REQUIRE(g.leader() > 0);
  g.check_it_serves();
}

TEST_CASE("eligible: a leader that gave the lead up is the last choice, not none", "[R=3][C6]") {
  UnfitGroup g;
  g.step(0, Abdicate{});
  g.step(0, ServerHealthy{});
  SECTION("while others can lead") {
    g.settle();
    g.run_for(kSoonNs);
    CHECK(g.leader() > 0);
  }
  SECTION("when no other one may") {
    g.unfit({1, 2});
    g.run_for(kSoonNs);
    CHECK(g.leader() == 0);
  }
  g.check_it_serves();
}
