// SPDX-License-Identifier: Apache-2.0
// Single steps of commit rule `disk` on instant memory and disks that wait.  Worlds with faults:
// tests/sim.  Mutants of these rules: tests/sim/mutants_test.cc.
#include <catch2/catch.hpp>

#include "consensus/core/replica.h"
#include "tests/unit/consensus/led_group.h"

using namespace crane;
using namespace crane::consensus::core;

namespace {

constexpr std::uint64_t kMs = 1'000'000;

// A group of three whose leader is replica 0, all idle.
struct DiskGroup : InstantGroup {
  DiskGroup() : InstantGroup(3) {
    config.durability = Durability::kDisk;
    elect_first(*this);
    for (unsigned i = 0; i < 3; ++i) flush(i);
    run_for(20 * kMs);
  }
  Index committed(unsigned id) const { return nodes[id].core->committed(); }
  void slow(std::initializer_list<unsigned> ids) {
    for (const unsigned i : ids) nodes[i].slow_disk = true;
  }
  void finish(unsigned id) {
    finish_stores(id);
    settle();
  }
  Index propose_and_flush() {
    const auto index = propose(0);
    REQUIRE(index.ok());
    flush(0);
    return index.value();
  }
};

}  // namespace

TEST_CASE("consensus disk: committed when a majority has stored it, not before", "[R=3][C4]") {
  DiskGroup g;
  g.slow({0, 1, 2});
  const Index before = g.committed(0);
  const Index index = g.propose_and_flush();
  CHECK(g.committed(0) == before);
  g.finish(0);  // the leader counts itself, and alone is no majority
  CHECK(g.committed(0) == before);
  g.finish(2);
  CHECK(g.committed(0) == index);
}

TEST_CASE("consensus disk: the leader counts itself up to its own durable index only",
          "[R=3][C4]") {
  DiskGroup g;
  g.slow({0, 1, 2});
  const Index before = g.committed(0);
  const Index index = g.propose_and_flush();
  g.finish(1);
  CHECK(g.committed(0) == before);
  g.finish(2);  // two followers are a majority without it
  CHECK(g.committed(0) == index);
  CHECK(g.nodes[0].core->durable().index == before);
}

TEST_CASE("consensus disk: entries that arrive during a transaction form the next one",
          "[R=3][CORE-D4][CORE-S6]") {
  DiskGroup g;
  g.slow({0});
  const Index first = g.propose_and_flush();
  for (int i = 0; i < 10; ++i) g.propose_and_flush();
  REQUIRE(g.nodes[0].stores.size() == 1);
  CHECK(g.nodes[0].stores[0].last.index == first);
  g.finish(0);
  REQUIRE(g.nodes[0].stores.size() == 1);
  CHECK(value(g.nodes[0].stores[0].last.index) == value(first) + 10);
  CHECK(g.nodes[0].stores[0].before.index == first);
}

TEST_CASE("consensus disk: nothing is granted before the promise is durable", "[R=3][CORE-D1]") {
  DiskGroup g;
  g.slow({2});
  g.kill(0);
  g.run_for(20 * kMs);
  CHECK(g.leader() == -1);
  REQUIRE(g.nodes[2].promises.size() == 1);
  CHECK(g.nodes[2].keys[1] == 0);
  g.finish(2);
  CHECK(g.nodes[2].keys[1] != 0);
}

TEST_CASE("consensus disk: no replica is asked before the candidate's promise is durable",
          "[R=3][CORE-D1]") {
  DiskGroup g;
  g.slow({1});
  const View old = g.nodes[2].core->promised_view();
  g.kill(0);
  g.run_for(20 * kMs);
  REQUIRE(g.nodes[1].promises.size() == 1);
  CHECK(g.nodes[2].core->promised_view() == old);
  g.nodes[1].slow_disk = false;
  g.finish(1);
  CHECK(g.leader() == 1);
}

TEST_CASE("consensus disk: a durable index of another view does not count", "[R=3][CORE-D2][U4]") {
  DiskGroup g;
  g.slow({0, 1, 2});
  const Index before = g.committed(0);
  const Index index = g.propose_and_flush();
  g.finish(0);
  Message m{};
  m.type = MessageType::kDurable;
  m.from = 2;
  m.log_id = g.config.log_id;
  m.incarnation = kFirstIncarnation;
  const View view = g.nodes[0].core->promised_view();
  const auto report_durable = [&](View reported_in, View stored) {
    m.view = reported_in;
    m.last = {stored, index};
    g.step(0, MessageArrived{ReplicaId{2}, std::as_bytes(std::span(&m, 1))});
  };
  report_durable(make_view(view_counter(view) - 1, ReplicaId{0}), view);
  report_durable(view, make_view(view_counter(view) - 1, ReplicaId{0}));
  CHECK(g.committed(0) == before);
  report_durable(view, view);
  CHECK(g.committed(0) == index);
}

TEST_CASE("consensus disk: at a grant the store's cursor goes back to the commit index",
          "[R=3][CORE-D3][U4]") {
  DiskGroup g;
  g.slow({1});
  g.nodes[0].slow_disk = true;
  const Index before = g.committed(0);
  const Index index = g.propose_and_flush();
  const Index known = g.committed(2);
  CHECK(g.nodes[2].core->durable().index == index);
  CHECK(known == before);
  Message m{};
  m.type = MessageType::kRequest;
  m.from = 0;
  m.log_id = g.config.log_id;
  m.incarnation = kFirstIncarnation;
  m.view = g.nodes[0].core->promised_view();
  g.nodes[2].slow_disk = true;
  g.step(2, MessageArrived{ReplicaId{0}, std::as_bytes(std::span(&m, 1))});
  CHECK(g.nodes[2].core->durable().index == known);
  g.settle();  // granted again, its log is complete: it stores and reports again
  REQUIRE(g.nodes[2].stores.size() == 1);
  CHECK(g.nodes[2].stores[0].before.index == known);
  g.finish(0);
  g.finish(2);
  CHECK(g.nodes[2].core->durable().index == index);
  CHECK(g.committed(0) == index);
}

TEST_CASE("consensus disk: after a lost message the leader reads the cell", "[R=3]") {
  DiskGroup g;
  g.slow({0, 1, 2});
  const Index index = g.propose_and_flush();
  g.finish(0);
  g.finish_stores(1);
  while (!g.nodes[1].events.empty()) {
    const Event e = g.nodes[1].events.front();
    g.nodes[1].events.pop_front();
    g.step(1, e);
  }
  g.nodes[0].mail.clear();
  CHECK(g.committed(0) < index);
  g.run_for(20 * kMs);
  CHECK(g.committed(0) == index);
}

// GOAL    A group whose promises always take longer than a candidate's first time-out gets a
//         leader.
// METHOD  The leader dies; both disks answer a promise after several times the time-out.
TEST_CASE("consensus disk: a candidate without enough answers waits longer the next time",
          "[R=3][C6][L1]") {
  DiskGroup g;
  g.slow({1, 2});
  g.kill(0);
  std::map<View, std::uint64_t> asked[3];
  for (unsigned ms = 0; ms < 20'000 && g.leader() < 0; ++ms) {
    g.run_for(kMs);
    for (const unsigned i : {1U, 2U}) {
      InstantGroup::Node& n = g.nodes[i];
      for (const StoreEntries& e : std::exchange(n.stores, {})) {
        n.events.push_back(Stored{e.sequence, e.last, e.to_pos});
      }
      if (n.promises.empty()) continue;
      const std::uint64_t since = asked[i].try_emplace(n.promises.front(), g.now_ns).first->second;
      if (g.now_ns - since < 8 * g.config.ask_timeout_ns) continue;
      n.events.push_back(PromiseStored{n.promises.front()});  // one after the other, as a disk does
      n.promises.erase(n.promises.begin());
    }
    g.settle();
  }
  CHECK(g.leader() > 0);
}

// GOAL    Slow disks do not cost a group its leader; a cut does, even with slow disks.
TEST_CASE("consensus disk: a leader whose followers' disks are slow continues to lead",
          "[R=3][C6][C8]") {
  DiskGroup g;
  g.slow({1, 2});
  const View view = g.nodes[0].core->promised_view();
  const Index before = g.committed(0);
  const Index index = g.propose_and_flush();
  g.run_for(5000 * kMs);
  CHECK(g.committed(0) == before);
  REQUIRE(g.leader() == 0);
  CHECK(g.nodes[0].core->promised_view() == view);
  SECTION("and commits when one follower has answered") {
    g.finish(2);
    CHECK(g.committed(0) == index);
  }
  SECTION("but not when no write to them completes") {
    g.nodes[1].late = g.nodes[2].late = true;
    g.run_for(1500 * kMs);
    CHECK(g.nodes[0].core->role() != Role::kLeader);
  }
  SECTION("but not when they cannot be reached, even if nothing is under way") {
    g.nodes[1].cut = g.nodes[2].cut = true;
    g.run_for(1500 * kMs);
    CHECK(g.nodes[0].core->role() != Role::kLeader);
  }
}

TEST_CASE("consensus disk: a store that fails ends its replica, not the group", "[R=3][C5]") {
  DiskGroup g;
  g.step(2, StoreFailed{"the disk is full"});
  CHECK(g.nodes[2].fatal == "the disk is full");
  CHECK(g.nodes[2].core->role() == Role::kFailed);
  const Index index = g.propose_and_flush();
  CHECK(g.committed(0) == index);
  CHECK(g.nodes[2].core->durable().index < index);
}

TEST_CASE("consensus disk: bytes that are not durable are not released", "[R=3][CORE-D4]") {
  DiskGroup g;
  g.slow({2});
  for (int i = 0; i < 4000; ++i) {
    static_cast<void>(g.propose(0, 200));
    g.flush(0);
  }
  g.run_for(50 * kMs);
  const std::uint64_t consumed = g.nodes[2].cells[kStatusCell][kConsumedPos];
  CHECK(consumed <= g.nodes[2].stores[0].from_pos);
  CHECK(g.committed(0) > g.nodes[2].core->durable().index);
}
