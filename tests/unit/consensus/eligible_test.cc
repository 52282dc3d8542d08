// SPDX-License-Identifier: Apache-2.0
// GOAL    A group has a leader again soon after its replicas are fit, however long all were unfit.
// METHOD  All replicas of a group abdicate, time passes while their applications report their lag,
//         some are fit again.
// CHECKS  C6: Abdicate, ServerHealthy, ServerLagging and Tick; an unfit voter grants; logs that
//         were cut; of two replicas whose servers lag, the one leads whose server has run more, and
//         a replica that yields does so for a while only.
#include <catch2/catch.hpp>
#include <initializer_list>

#include "tests/unit/consensus/led_group.h"

using namespace crane;
using namespace crane::consensus::core;

namespace {

constexpr std::uint64_t kMs = 1'000'000;
// An idle period until a campaign is planned, the others' head start, and the election.
constexpr std::uint64_t kSoonNs = 350 * kMs;
constexpr std::uint64_t kLongNs = 20'000 * kMs;
// Lagging applications report it more often than an idle replica has a Tick.
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
  // All processes end, and restart on their memory, unfit.
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

TEST_CASE("eligible: applications that report their lag repeatedly delay no election",
          "[R=3][C6]") {
  const auto durability = GENERATE(Durability::kMemory, Durability::kDisk);
  UnfitGroup g(durability);
  g.begin_again();
  g.fall_behind_for(kLongNs);
  REQUIRE(g.leader() == -1);
  SECTION("all are fit") { g.fit(); }
  SECTION("one is fit") { g.fit({2}); }
  g.fall_behind_for(kSoonNs);
  g.check_it_serves();
}

TEST_CASE("eligible: also after their stores were cut", "[R=3, disk][C6][CORE-D5]") {
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

TEST_CASE("eligible: repeatedly", "[R=3][C6]") {
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

TEST_CASE("eligible: an unfit replica does not campaign while the others are away", "[R=3][C6]") {
  UnfitGroup g;
  g.unfit({1, 2});
  g.kill(0);
  g.fall_behind_for(2000 * kMs);
  CHECK(g.leader() == -1);
  g.fit({2});
  g.fall_behind_for(kSoonNs);
  CHECK(g.leader() == 2);
}

TEST_CASE("eligible: of two lagging servers the one that has run more leads", "[R=3][C6]") {
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

TEST_CASE("eligible: all restart, and the server that has run most leads", "[R=3][C6]") {
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

TEST_CASE("eligible: a replica that yields leads if the other one cannot", "[R=3][C6]") {
  UnfitGroup g;
  g.step(1, ServerLagging{1000 * kMs, Index{3}});
  g.step(2, ServerLagging{1000 * kMs, Index{15}});
  SECTION("because it is stopped") { g.nodes[2].stopped = true; }
  SECTION("because it abdicated before") { g.unfit({2}); }
  g.kill(0);
  g.run_for(kSoonNs);
  g.nodes[2].stopped = false;
  g.run_for(kSoonNs);
  REQUIRE(g.leader() > 0);
  g.check_it_serves();
}

TEST_CASE("eligible: a leader that abdicated is the last choice, but not excluded", "[R=3][C6]") {
  UnfitGroup g;
  g.step(0, Abdicate{});
  g.step(0, ServerHealthy{});
  SECTION("while others can lead") {
    g.settle();
    g.run_for(kSoonNs);
    CHECK(g.leader() > 0);
  }
  SECTION("when no other one can") {
    g.unfit({1, 2});
    g.run_for(kSoonNs);
    CHECK(g.leader() == 0);
  }
  g.check_it_serves();
}
