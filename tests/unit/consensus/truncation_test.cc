// SPDX-License-Identifier: Apache-2.0
// Which entries stores drop, step by step (CORE-D5).  Worlds with faults: tests/sim, with
// --checkpoints.
#include <catch2/catch.hpp>

#include "tests/unit/consensus/led_group.h"

using namespace crane;
using namespace crane::consensus::core;

namespace {

constexpr std::uint64_t kMs = 1'000'000;

struct TruncationGroup : LedGroup {
  explicit TruncationGroup(Durability durability = Durability::kDisk)
      : LedGroup(durability, 200 * kMs) {}
  void holds(unsigned id, std::uint64_t index) {
    step(id, Checkpointed{Index{index}});
    calm();
  }
  std::vector<std::uint64_t> dropped() const {
    std::vector<std::uint64_t> all;
    for (const Node& n : nodes) all.push_back(value(n.dropped));
    return all;
  }
};

using Dropped = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("consensus covered: stores drop entries that a majority's checkpoints cover",
          "[R=3][CORE-D5]") {
  TruncationGroup g;
  g.holds(1, 9);
  CHECK(g.dropped() == Dropped{0, 0, 0});  // one replica is no majority
  g.holds(2, 5);
  CHECK(g.dropped() == Dropped{5, 5, 5});  // the leader, too, which holds no checkpoint
  g.holds(2, 12);
  CHECK(g.dropped() == Dropped{9, 9, 9});
  g.holds(2, 11);  // an older one changes nothing
  CHECK(g.dropped() == Dropped{9, 9, 9});
  g.holds(0, 12);  // the leader counts itself
  CHECK(g.dropped() == Dropped{12, 12, 12});
}

TEST_CASE("consensus covered: in memory mode nothing is dropped", "[R=3][CORE-D5]") {
  TruncationGroup g(Durability::kMemory);
  const Index last = g.nodes[0].core->last().index;
  for (unsigned i = 0; i < 3; ++i) g.holds(i, 9);
  CHECK(g.dropped() == Dropped{0, 0, 0});
  CHECK(g.nodes[0].core->last().index == last);
}

TEST_CASE("consensus covered: replicas report again to a new leader", "[R=3][CORE-D5]") {
  TruncationGroup g;
  g.holds(1, 9);
  g.nodes[1].cut = true;  // a holder is away, and another replica leads
  g.stop(0);
  g.nodes[1].cut = false;
  g.calm();
  const int leads = g.leader();
  REQUIRE(leads > 0);
  g.holds(2, 7);
  CHECK(g.nodes[1].dropped == Index{7});
  CHECK(g.nodes[2].dropped == Index{7});
}

TEST_CASE("consensus covered: a checkpoint held before a replica was lost does not count",
          "[R=3][CORE-D5]") {
  TruncationGroup g;
  g.holds(2, 9);
  g.stop(2);
  g.lose_memory(2);
  g.nodes[2].held.clear();
  g.nodes[2].dropped = {};
  g.restart(2, StartKind::kLost, nullptr);
  g.calm();
  REQUIRE(g.nodes[0].core->members().voter(ReplicaId{2}));
  g.holds(1, 8);
  CHECK(g.dropped() == Dropped{0, 0, 0});
  g.holds(2, 6);
  CHECK(g.dropped() == Dropped{6, 6, 6});
}

TEST_CASE("consensus covered: entries that are not stored yet are not dropped", "[R=3][CORE-D5]") {
  TruncationGroup g;
  g.nodes[2].slow_disk = true;
  for (int i = 0; i < 5; ++i) REQUIRE(g.propose(0).ok());
  g.calm();
  const std::uint64_t end = value(g.nodes[0].core->committed());
  g.holds(0, end);
  g.holds(1, end);
  CHECK(g.dropped() == Dropped{end, end, 0});
  g.nodes[2].slow_disk = false;
  g.finish_stores(2);
  g.settle();
  g.calm();
  CHECK(g.dropped() == Dropped{end, end, end});
}
