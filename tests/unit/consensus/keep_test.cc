// SPDX-License-Identifier: Apache-2.0
// GOAL    A group whose replicas all die begins where its servers can, however much was logged.
// METHOD  A small ring is filled; all replicas stop and restart on their memory.
// CHECKS  CORE-C7: inputs wait when the kept log fills the ring; naming a place makes room, even
//         one that was not delivered yet; an older place changes nothing; a log that is not kept is
//         overwritten.  CORE-C8: released entries are not kept again.
#include <catch2/catch.hpp>

#include "tests/unit/consensus/led_group.h"

using namespace crane;
using namespace crane::consensus::core;

namespace {

constexpr std::uint64_t kMs = 1'000'000;

struct KeepingGroup : InstantGroup {
  explicit KeepingGroup(bool keeps = true) : InstantGroup(3) {
    config.keeps_log = keeps;
    elect_first(*this);
    REQUIRE(leader() >= 0);
  }
  // How many entries the group accepted, up to `most`, until it refused one.
  int fill(int most = 1000) {
    for (int i = 0; i < most; ++i) {
      if (!propose(static_cast<unsigned>(leader()), 1000).ok()) return i;
      if (i % 8 == 0) report_held();
    }
    return most;
  }
  void report_held() {
    flush(static_cast<unsigned>(leader()));
    run_for(100 * kMs);
  }
  void keep(const std::optional<Cursor>& from) {
    for (unsigned i = 0; i < 3; ++i) step(i, Keep{from});
    run_for(100 * kMs);
  }
  // All processes die at once, and their servers begin at `checkpoint`.
  void begin_again(const Checkpoint& checkpoint) {
    for (unsigned i = 0; i < 3; ++i) stop(i);
    for (unsigned i = 0; i < 3; ++i) start(i, StartKind::kSurvived, &checkpoint);
    for (unsigned i = 0; i < 3; ++i) {
      for (unsigned k = 0; k < 3; ++k) {
        if (i != k) step(i, PeerUp{ReplicaId{static_cast<std::uint8_t>(k)}});
      }
    }
    settle();
    run_for(500 * kMs);
    REQUIRE(leader() >= 0);
    report_held();
  }
};

}  // namespace

TEST_CASE("keep: inputs wait when the kept log fills the ring", "[R=3][CORE-C7]") {
  KeepingGroup g;
  const int taken = g.fill();
  CHECK(taken > 30);
  CHECK(taken < 64);
  g.run_for(2000 * kMs);
  CHECK(g.fill() == 0);
  const auto leader = static_cast<unsigned>(g.leader());
  const Index last = g.nodes[leader].core->committed();
  Checkpoint beginning;
  beginning.config.members = Members::first(3);
  g.begin_again(beginning);
  for (const auto& node : g.nodes) {
    REQUIRE(node.fatal.empty());
    REQUIRE(node.delivered.size() > value(last));
    CHECK(node.delivered.front().at.index == Index{1});
  }
}

TEST_CASE("keep: naming a place makes room, and servers begin there", "[R=3][CORE-C7]") {
  KeepingGroup g;
  REQUIRE(g.fill(20) == 20);
  g.report_held();
  const Checkpoint checkpoint = g.take_checkpoint(static_cast<unsigned>(g.leader()));
  REQUIRE(g.fill() < 64);
  g.keep(checkpoint.at);
  CHECK(g.fill() > 10);
  const Index last = g.nodes[static_cast<unsigned>(g.leader())].core->committed();
  g.begin_again(checkpoint);
  for (const auto& node : g.nodes) {
    REQUIRE(node.fatal.empty());
    REQUIRE_FALSE(node.delivered.empty());
    CHECK(value(node.delivered.front().at.index) == value(checkpoint.at.last.index) + 1);
    CHECK(node.delivered.back().at.index >= last);
  }
}

TEST_CASE(
    "keep: a replica that begins at a newer checkpoint than it kept makes room for later entries",
    "[R=3][CORE-C7]") {
  KeepingGroup g;
  REQUIRE(g.fill(20) == 20);
  g.report_held();
  const Checkpoint checkpoint = g.take_checkpoint(static_cast<unsigned>(g.leader()));
  g.fill(20);
  g.begin_again(checkpoint);
  const int taken = g.fill();
  CHECK(taken > 10);
  const Index last = g.nodes[static_cast<unsigned>(g.leader())].core->committed();
  for (const auto& node : g.nodes) CHECK(node.core->committed() == last);
}

TEST_CASE("keep: an older place makes no room", "[R=3][CORE-C7]") {
  KeepingGroup g;
  REQUIRE(g.fill(20) == 20);
  g.report_held();
  const Checkpoint checkpoint = g.take_checkpoint(static_cast<unsigned>(g.leader()));
  g.keep(checkpoint.at);
  g.keep(Cursor{});
  REQUIRE(g.fill() < 64);
  g.begin_again(checkpoint);
  for (const auto& node : g.nodes) CHECK(node.fatal.empty());
}

TEST_CASE("keep: a lagging replica gets room from a place that it has not delivered yet",
          "[R=3][CORE-C7]") {
  KeepingGroup g;
  const auto leader = static_cast<unsigned>(g.leader());
  const unsigned lags = (leader + 1) % 3;
  g.nodes[lags].stalled = true;
  g.fill();
  g.report_held();
  const Checkpoint checkpoint = g.take_checkpoint(leader);
  g.keep(checkpoint.at);
  REQUIRE(g.nodes[lags].core->delivered() < checkpoint.at.last.index);
  g.nodes[lags].stalled = false;
  CHECK(g.fill(20) == 20);
  g.report_held();
  for (const auto& node : g.nodes) {
    CHECK(node.core->delivered() == g.nodes[leader].core->committed());
  }
  g.begin_again(checkpoint);
  for (const auto& node : g.nodes) CHECK(node.fatal.empty());
}

TEST_CASE("keep: released entries are not taken back", "[R=3][CORE-C8]") {
  KeepingGroup g;
  REQUIRE(g.fill(20) == 20);
  g.report_held();
  const Checkpoint old = g.take_checkpoint(static_cast<unsigned>(g.leader()));
  g.keep(std::nullopt);
  REQUIRE(g.fill(100) == 100);
  g.report_held();
  std::vector<std::uint64_t> consumed;
  for (const auto& node : g.nodes) consumed.push_back(node.cells[kStatusCell][kConsumedPos]);
  g.keep(old.at);
  for (unsigned i = 0; i < 3; ++i) {
    CHECK(g.nodes[i].cells[kStatusCell][kConsumedPos] >= consumed[i]);
  }
  // Their rings hold the log from the published position on, not from the named place.
  const Viewstamp last = g.nodes[0].core->last();
  for (unsigned i = 0; i < 3; ++i) g.stop(i);
  for (unsigned i = 0; i < 3; ++i) {
    g.start(i, StartKind::kSurvived);
    g.settle();
    CHECK(g.nodes[i].core->last() == last);
  }
}

TEST_CASE("keep: a log is kept again from the first entry that was not released",
          "[R=3][CORE-C7]") {
  KeepingGroup g;
  REQUIRE(g.fill(20) == 20);
  g.report_held();
  const Checkpoint old = g.take_checkpoint(static_cast<unsigned>(g.leader()));
  g.keep(std::nullopt);
  REQUIRE(g.fill(20) == 20);
  g.report_held();
  g.keep(old.at);
  REQUIRE(g.fill(20) == 20);
  g.report_held();
  const Checkpoint checkpoint = g.take_checkpoint(static_cast<unsigned>(g.leader()));
  g.keep(checkpoint.at);
  REQUIRE(g.fill() < 64);
  g.begin_again(checkpoint);
  for (const auto& node : g.nodes) CHECK(node.fatal.empty());
}

TEST_CASE("keep: a log that is not kept is overwritten", "[R=3][CORE-C7]") {
  KeepingGroup g(GENERATE(true, false));
  g.keep(std::nullopt);
  CHECK(g.fill(200) == 200);
  for (unsigned i = 0; i < 3; ++i) g.stop(i);
  Checkpoint beginning;
  beginning.config.members = Members::first(3);
  g.start(0, StartKind::kSurvived, &beginning);
  g.settle();
  CHECK(g.nodes[0].core->checkpoint_too_old());
}
