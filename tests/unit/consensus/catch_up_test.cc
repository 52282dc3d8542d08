// SPDX-License-Identifier: Apache-2.0
// A follower that was away for more than a ring, on instant memory.  Worlds with faults: tests/sim.
// Mutants of these rules: tests/sim/mutants_test.cc.
#include <catch2/catch.hpp>

#include "consensus/core/replica.h"
#include "tests/unit/consensus/core_harness.h"

using namespace crane;
using namespace crane::consensus::core;

namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kRing = 8192;

// Replica 0 leads; replica 2 missed several laps of the ring.
struct LappedGroup : InstantGroup {
  explicit LappedGroup(Durability durability) : InstantGroup(3, kRing) {
    config.durability = durability;
    config.payload_bytes_max = 1024;
    start_all();
    settle_down();
    REQUIRE(leader() == 0);
    nodes[2].cut = true;
    work(60);
    REQUIRE(nodes[0].core->end_pos() > 4 * kRing);
  }
  void settle_down() {
    run_for(200 * kMs);
    for (unsigned i = 0; i < 3; ++i) flush(i);
    run_for(20 * kMs);
  }
  void work(unsigned entries) {
    for (unsigned i = 0; i < entries; ++i) {
      REQUIRE(propose(0, 700).ok());
      for (unsigned id = 0; id < 3; ++id) flush(id);
    }
  }
  Index delivered(unsigned id) const { return nodes[id].core->delivered(); }
  PeerState seen() const { return nodes[0].core->peer_state(ReplicaId{2}); }
};

}  // namespace

TEST_CASE("catch-up: a lapped follower fetches from a peer's store, not from the leader's",
          "[R=3, disk][CORE-B1][CORE-B2]") {
  LappedGroup g(Durability::kDisk);
  g.nodes[2].cut = false;
  g.run_for(2000 * kMs);
  CHECK(g.delivered(2) == g.delivered(0));
  CHECK(g.seen() == PeerState::kStreaming);
  CHECK_FALSE(g.nodes[2].core->fetching());
  CHECK(g.nodes[1].served >= 4 * kRing / fetch_bytes(kRing) / 2);
  CHECK(g.nodes[0].served == 0);
  for (std::size_t i = 0; i < g.nodes[2].delivered.size(); ++i) {
    REQUIRE(g.nodes[2].delivered[i].at == g.nodes[0].delivered[i].at);
  }
  CHECK(g.nodes[2].held == g.nodes[0].held);  // so it can serve the entries itself
}

TEST_CASE("catch-up: the leader serves if no other replica can", "[R=3, disk]") {
  LappedGroup g(Durability::kDisk);
  g.nodes[1].held.erase(g.nodes[1].held.begin(), g.nodes[1].held.find(40));
  g.nodes[2].cut = false;
  g.run_for(2000 * kMs);
  CHECK(g.delivered(2) == g.delivered(0));
  CHECK(g.nodes[0].served > 0);
}

TEST_CASE("catch-up: if no store has the entries, a checkpoint must help", "[R=3, disk]") {
  LappedGroup g(Durability::kDisk);
  for (const unsigned i : {0U, 1U}) {
    g.nodes[i].held.erase(g.nodes[i].held.begin(), g.nodes[i].held.find(40));
  }
  const Index before = g.delivered(2);
  g.nodes[2].cut = false;
  g.run_for(2000 * kMs);
  CHECK(g.delivered(2) == before);
  CHECK(g.nodes[2].core->needs_checkpoint());
  CHECK(g.nodes[0].core->peer_needs_checkpoint(ReplicaId{2}));
}

TEST_CASE("catch-up: in memory mode there is no source (L4)", "[R=3]") {
  LappedGroup g(Durability::kMemory);
  g.nodes[2].cut = false;
  g.run_for(2000 * kMs);
  CHECK(g.seen() == PeerState::kBehind);
  CHECK(g.nodes[2].core->needs_checkpoint());
  CHECK(g.nodes[0].core->peer_needs_checkpoint(ReplicaId{2}));
  CHECK_FALSE(g.nodes[2].core->fetching());
}

TEST_CASE("catch-up: under load, and after the leader changed in the middle of it",
          "[R=3, disk][U1]") {
  LappedGroup g(Durability::kDisk);
  g.nodes[2].cut = false;
  g.run_for(3 * kMs);  // it learns that it is behind, and begins
  for (int i = 0; i < 400 && !g.nodes[2].core->fetching(); ++i) g.run_for(kMs);
  g.work(20);
  g.step(0, Abdicate{});
  g.run_for(3000 * kMs);
  CHECK(g.leader() == 1);
  CHECK(g.delivered(2) == g.delivered(1));
  CHECK(g.delivered(0) == g.delivered(1));
  CHECK(g.nodes[1].core->peer_state(ReplicaId{2}) == PeerState::kStreaming);
}

TEST_CASE("catch-up: an entry larger than the region arrives in pieces", "[R=3, disk]") {
  LappedGroup g(Durability::kDisk);
  REQUIRE(entry_bytes(1024) > fetch_bytes(kRing));
  for (unsigned i = 0; i < 20; ++i) {
    REQUIRE(g.propose(0, 1024).ok());
    for (unsigned id = 0; id < 3; ++id) g.flush(id);
  }
  g.nodes[2].cut = false;
  g.run_for(2000 * kMs);
  CHECK(g.delivered(2) == g.delivered(0));
}

TEST_CASE("catch-up: entries that were read are checked, and requested again if wrong",
          "[R=3, disk]") {
  LappedGroup g(Durability::kDisk);
  g.nodes[2].cut = false;
  const std::uint64_t at = g.nodes[1].core->ring().fetch_offset();
  for (int i = 0; i < 2000; ++i) {
    g.run_for(kMs);
    if (i % 7 == 0) g.nodes[1].memory[at + static_cast<unsigned>(i) % 900] ^= std::byte{4};
  }
  CHECK(g.delivered(2) == g.delivered(0));
  for (std::size_t i = 0; i < g.nodes[2].delivered.size(); ++i) {
    REQUIRE(g.nodes[2].delivered[i].at == g.nodes[0].delivered[i].at);
  }
}
