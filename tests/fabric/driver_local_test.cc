// SPDX-License-Identifier: Apache-2.0
// GOAL    what one iteration of a node's loop may count on (consensus.h): all whose writes have
//         completed is committed by the next poll(), and each entry is told as soon as it is.
// METHOD  three replicas over shared memory in this thread, where writes complete at once.
// CHECKS  the calls of on_committed, and what status() says inside them.
// REPLAY  deterministic.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/clock.h"
#include "tests/fabric/harness.h"

namespace crane::test {
namespace {

using consensus::Consensus;

std::uint64_t now_ns() { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

struct Local {
  struct Told {
    Index entry{};
    Index committed{};  // as status() says at that moment
  };
  TemporaryDirectory directory;
  std::array<std::unique_ptr<Consensus>, 3> replicas;
  std::vector<Told> told;  // by replica 0
  bool leads = false;

  Local() {
    for (std::uint8_t i = 0; i < replicas.size(); ++i) {
      consensus::Options o;
      o.directory = directory.path();
      o.self = ReplicaId{i};
      o.ring_bytes = 1U << 20;
      o.log_id = 99;
      if (i == 0) {
        o.callbacks.on_committed = [this](const consensus::EntryView& e) {
          told.push_back({e.at.index, replicas[0]->status().committed});
        };
        o.callbacks.on_role = [this](consensus::Role role, auto, auto) {
          leads = role == consensus::Role::kLeader;
        };
      }
      auto opened = Consensus::open(std::move(o));
      REQUIRE(opened.ok());
      replicas[i] = std::move(opened).value();
      if (i > 0) replicas[i]->abdicate("replica 0 leads");
    }
  }
  void iterate() {
    for (const auto& r : replicas) {
      r->poll(now_ns());
      r->flush_doorbells();
    }
  }
  bool all_stream() {
    const auto members = replicas[0]->members();
    return std::all_of(members.begin(), members.end(),
                       [](const auto& m) { return m.id == ReplicaId{0} || m.streaming; });
  }
};

}  // namespace

TEST_CASE("driver: one poll commits all that has completed, and tells each entry when it is",
          "[driver]") {
  Local group;
  REQUIRE(until([&] {
    group.iterate();
    return group.leads && group.all_stream();
  }));
  group.told.clear();
  constexpr std::size_t kEntries = 20;
  Index first{};
  for (std::size_t i = 0; i < kEntries; ++i) {
    const auto index = group.replicas[0]->propose(1, 0, 0, bytes_of("entry"));
    REQUIRE(index.ok());
    if (i == 0) first = index.value();
  }
  group.replicas[0]->poll(now_ns());
  REQUIRE(group.told.size() == kEntries);
  for (std::size_t i = 0; i < kEntries; ++i) {
    CHECK(value(group.told[i].entry) == value(first) + i);
    CHECK(group.told[i].committed == group.told[i].entry);
  }
}

namespace {

// A replica in disk or memory mode whose server is taken down and brought back.
struct Served {
  std::vector<std::uint64_t> seen;  // indexes, since it was opened
  consensus::Checkpoint taken;      // at the entry `take_at`
  std::uint64_t take_at = 0;
  std::unique_ptr<Consensus> replica;
};

struct ServedGroup {
  TemporaryDirectory directory;
  consensus::Durability durability;
  std::array<Served, 3> served;
  bool leads = false;

  explicit ServedGroup(consensus::Durability d) : durability(d) {
    for (std::uint8_t i = 0; i < served.size(); ++i) {
      REQUIRE(open(i, std::nullopt).ok());
      if (i > 0) served[i].replica->abdicate("replica 0 leads");
    }
    REQUIRE(until([&] { return iterate(), leads && streams(1) && streams(2); }));
  }
  Outcome open(std::uint8_t id, const std::optional<consensus::Checkpoint>& checkpoint,
               bool forget = false) {
    consensus::Options o;
    o.directory = directory.path();
    o.store_directory = directory.path() + "/stores";
    o.durability = durability;
    o.self = ReplicaId{id};
    o.ring_bytes = 1U << 16;
    o.log_id = 99;
    o.checkpoint = checkpoint;
    o.forget = forget;
    Served& s = served[id];
    s.seen.clear();
    o.callbacks.on_committed = [&s](const consensus::EntryView& e) {
      s.seen.push_back(value(e.at.index));
      if (s.seen.back() == s.take_at) s.taken = {e.place(), s.replica->group_facts()};
    };
    if (id == 0) {
      o.callbacks.on_role = [this](consensus::Role role, auto, auto) {
        leads = role == consensus::Role::kLeader;
      };
    }
    auto opened = Consensus::open(std::move(o));
    if (!opened) return opened.error();
    s.replica = std::move(opened).value();
    return Done{};
  }
  void iterate() {
    for (const Served& s : served) {
      if (!s.replica) continue;
      s.replica->poll(now_ns());
      s.replica->flush_doorbells();
    }
  }
  bool streams(std::uint8_t id) const {
    const auto members = served[0].replica->members();
    return std::any_of(members.begin(), members.end(), [id](const auto& m) {
      return m.id == ReplicaId{id} && m.streaming && m.role == consensus::MemberRole::kVoter;
    });
  }
  std::uint64_t last(std::uint8_t id) const { return value(served[id].replica->status().applied); }
  // So many entries of 1000 bytes, which reach all that are there.
  void work(int entries) {
    const std::vector<std::byte> payload(1000, std::byte{3});
    std::uint64_t end = 0;  // a store may be long behind what was proposed
    for (int done = 0; done < entries;) {
      const auto index = served[0].replica->propose(1, 0, 0, payload);
      if (index.ok()) ++done, end = value(index.value());
      iterate();
    }
    REQUIRE(until([&] {
      iterate();
      for (std::uint8_t i = 0; i < 3; ++i) {
        if (served[i].replica && (last(i) < end || last(i) != last(0))) return false;
      }
      return true;
    }));
  }
  // It was given all behind the place, once, in order.
  void check_seen(std::uint8_t id, const consensus::LogPlace& place) {
    std::uint64_t at = value(place.at.index);
    for (const std::uint64_t i : served[id].seen) REQUIRE(i == ++at);
    CHECK(at == last(0));
  }
};

}  // namespace

TEST_CASE("driver: a server that is brought back from a checkpoint gets all behind it, once",
          "[driver][checkpoint]") {
  const auto durability = GENERATE(consensus::Durability::kMemory, consensus::Durability::kDisk);
  const bool memory = durability == consensus::Durability::kMemory;
  INFO("memory mode " << memory);
  ServedGroup g(durability);
  g.served[1].take_at = g.last(0) + 5;
  g.work(20);
  const consensus::Checkpoint c = g.served[1].taken;
  REQUIRE(value(c.place.at.index) == g.served[1].take_at);
  CHECK(c.place.pos > 5000);

  g.served[2].replica.reset();
  REQUIRE(g.open(2, c).ok());
  g.work(20);
  g.check_seen(2, c.place);

  g.served[2].replica.reset();
  g.work(5);
  REQUIRE(g.open(2, c, true).ok());  // without what it had
  REQUIRE(until([&] { return g.iterate(), g.streams(2); }));
  g.work(5);
  g.check_seen(2, c.place);

  g.work(100);  // more than a ring
  g.served[2].replica.reset();
  const Outcome old = g.open(2, c);
  CHECK(old.ok() == !memory);  // a store has them
  if (memory) CHECK(old.error().code == Code::kGone);
  g.served[1].take_at = g.last(0) + 3;
  g.work(5);
  g.served[2].replica.reset();
  REQUIRE(g.open(2, g.served[1].taken).ok());
  g.work(5);
  g.check_seen(2, g.served[1].taken.place);
  CHECK(g.streams(2));

  consensus::Checkpoint bad = c;
  bad.facts.back() ^= std::byte{1};
  g.served[2].replica.reset();
  CHECK(g.open(2, bad).error().code == Code::kDamaged);
}

}  // namespace crane::test
