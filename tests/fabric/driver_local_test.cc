// SPDX-License-Identifier: Apache-2.0
// GOAL    the guarantees for one iteration of a node's loop (consensus.h): the next poll() commits
//         every entry whose writes have completed, and reports each entry when it is committed.
// METHOD  three replicas over shared memory in this thread, where writes complete at once.
// CHECKS  the calls of on_committed, and status() during them.
// REPLAY  deterministic.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/core/log.h"
#include "consensus/fabric/shm.h"
#include "consensus/log_tail.h"
#include "consensus/member_mark.h"
#include "dmt/base/clock.h"
#include "tests/fabric/harness.h"
#include "tests/fabric/local_replicas.h"

namespace crane::test {
namespace {

using consensus::Consensus;

std::uint64_t now_ns() { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

struct Local : LocalReplicas {
  struct RoleReport {
    Index entry{};
    Index committed{};  // as in status() at that moment
  };
  TemporaryDirectory directory;
  std::vector<RoleReport> role_reports;  // reported by replica 0

  Local() {
    for (std::uint8_t i = 0; i < replicas.size(); ++i) {
      consensus::Options o;
      o.directory = directory.path();
      o.self = ReplicaId{i};
      o.ring_bytes = 1U << 20;
      o.log_id = 99;
      if (i == 0) {
        o.callbacks.on_committed = [this](const consensus::EntryView& e) {
          role_reports.push_back({e.at.index, replicas[0]->status().committed});
        };
      }
      open(i, std::move(o));
    }
  }
};

}  // namespace

TEST_CASE("driver: one poll commits all completed entries, and reports each when it is committed",
          "[driver]") {
  Local group;
  REQUIRE(until([&] {
    group.iterate();
    return group.leads && group.all_stream();
  }));
  group.role_reports.clear();
  constexpr std::size_t kEntries = 20;
  Index first{};
  for (std::size_t i = 0; i < kEntries; ++i) {
    const auto index = group.replicas[0]->propose(1, 0, 0, bytes_of("entry"));
    REQUIRE(index.ok());
    if (i == 0) first = index.value();
  }
  group.replicas[0]->poll(now_ns());
  REQUIRE(group.role_reports.size() == kEntries);
  for (std::size_t i = 0; i < kEntries; ++i) {
    CHECK(value(group.role_reports[i].entry) == value(first) + i);
    CHECK(group.role_reports[i].committed == group.role_reports[i].entry);
  }
}

namespace {

enum class Opens { kWithServer, kForgets, kAcceptorOnly };

// A replica in disk or memory mode whose server is ended and restored.
struct Served {
  std::vector<std::uint64_t> seen;  // indexes since the replica was opened
  consensus::Checkpoint taken;      // at the entry `take_at`
  std::uint64_t take_at = 0;
  std::unique_ptr<Consensus> replica;
};

struct ServedGroup {
  TemporaryDirectory directory, elsewhere;
  std::string home = directory.path();
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
               Opens how = Opens::kWithServer) {
    consensus::Options o;
    o.directory = home;
    o.store_directory = home + "/stores";
    o.durability = durability;
    o.self = ReplicaId{id};
    o.ring_bytes = 1U << 16;
    o.log_id = 99;
    o.checkpoint = checkpoint;
    o.forget = how == Opens::kForgets;
    o.acceptor_only = how == Opens::kAcceptorOnly;
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
  // All replicas begin at the checkpoint, on another machine.
  void open_elsewhere(const consensus::Checkpoint& checkpoint) {
    leads = false;
    home = elsewhere.path();
    for (Served& s : served) s.replica.reset();
    for (std::uint8_t i = 0; i < served.size(); ++i) {
      REQUIRE(open(i, checkpoint).ok());
      if (i > 0) served[i].replica->abdicate("replica 0 leads");
    }
    REQUIRE(until([&] { return iterate(), leads && streams(1) && streams(2); }));
  }
  bool streams(std::uint8_t id) const {
    const auto members = served[0].replica->members();
    return std::any_of(members.begin(), members.end(), [id](const auto& m) {
      return m.id == ReplicaId{id} && m.streaming && m.role == consensus::MemberRole::kVoter;
    });
  }
  std::uint64_t last(std::uint8_t id) const { return value(served[id].replica->status().applied); }
  // Proposes `entries` entries of 1000 bytes, and waits until all open replicas have them.
  void work(int entries) {
    const std::vector<std::byte> payload(1000, std::byte{3});
    std::uint64_t end = 0;  // a store may lag far
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
  // It got all entries after the checkpoint, once, in order.
  void check_seen(std::uint8_t id, const consensus::LogPlace& place) {
    std::uint64_t at = value(place.at.index);
    for (const std::uint64_t i : served[id].seen) REQUIRE(i == ++at);
    CHECK(at == last(0));
  }
};

}  // namespace

TEST_CASE("driver: a server restored from a checkpoint gets all later entries, once",
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
  REQUIRE(g.open(2, c, Opens::kForgets).ok());  // without its memory
  REQUIRE(until([&] { return g.iterate(), g.streams(2); }));
  g.work(5);
  g.check_seen(2, c.place);

  g.work(100);  // more than a ring
  g.served[2].replica.reset();
  const Outcome old = g.open(2, c);
  CHECK(old.ok() == !memory);  // a store still has the entries
  if (memory) {
    CHECK(old.error().code == Code::kGone);
    REQUIRE(g.open(2, c, Opens::kAcceptorOnly).ok());
    g.served[1].replica.reset();
    g.work(5);  // its vote is needed
    REQUIRE(g.open(1, std::nullopt).ok());
    REQUIRE(until([&] { return g.iterate(), g.streams(1); }));
  }
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

TEST_CASE("driver: a group restored with the log after its checkpoint has all of it",
          "[driver][checkpoint]") {
  ServedGroup g(consensus::Durability::kDisk);
  g.served[1].take_at = g.last(0) + 5;
  g.work(100);  // more than a ring
  const consensus::Checkpoint c = g.served[1].taken;
  const std::string path = g.directory.path() + "/log";
  std::ofstream(path, std::ios::binary);
  const auto copy = [&g](const consensus::LogCopyRequest& request) {
    return g.served[2].replica->copy_log(request);
  };
  // A request beyond the log's end waits.
  const consensus::LogCopyRequest wanted{c.place, Index{g.last(0) + 3}, path};
  for (int i = 0; i < 10; ++i, g.iterate()) {
    const auto waits = copy(wanted);
    REQUIRE(waits.ok());
    CHECK_FALSE(waits.value().done);
  }
  g.work(3);
  REQUIRE(until([&] {
    g.iterate();
    const auto status = g.served[2].replica->status();
    return std::min(status.committed, status.durable) >= wanted.through;
  }));
  CHECK_FALSE(copy(wanted).value().done);  // it has begun
  CHECK(copy({c.place, wanted.through, path + "2"}).error().code == Code::kBusy);
  REQUIRE(until([&] { return g.iterate(), copy(wanted).value().done; }));
  const auto tail = consensus::check_log_tail(path);
  REQUIRE(tail.ok());
  CHECK(tail.value().begin == c.place);
  CHECK(tail.value().end.at.index >= wanted.through);
  const std::uint64_t end = value(tail.value().end.at.index);
  const consensus::LogPlace foreign{{View{1}, c.place.at.index}, c.place.pos};
  const consensus::LogCopyRequest of_another{foreign, wanted.through, path};
  CHECK_FALSE(copy(of_another).value().done);
  REQUIRE(until([&] { return g.iterate(), !copy(of_another).ok(); }));

  for (const char* self : {"0", "1", "2"}) {
    std::filesystem::create_hard_link(path, g.elsewhere.path() + "/restored-" + self);
  }
  {  // The memory of a start of replica 1 that was killed before it had taken its place.
    consensus::ShmOptions shm;
    shm.directory = g.elsewhere.path();
    shm.self = ReplicaId{1};
    shm.replicas = 3;
    shm.group = 99;
    shm.log_bytes = consensus::core::log_memory_bytes(1U << 16);
    REQUIRE(consensus::ShmFabric::open(shm).ok());
  }
  const auto members = g.served[0].replica->members();
  g.open_elsewhere(c);
  for (const auto& now : g.served[0].replica->members()) {
    CHECK(now.incarnation == members.at(value(now.id)).incarnation);
  }
  g.work(5);
  CHECK(g.last(0) > end);
  for (const std::uint8_t id : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}}) {
    g.check_seen(id, c.place);
    CHECK_FALSE(consensus::was_restored(g.elsewhere.path(), ReplicaId{id}, 99));  // RESTORED-1
  }
  CHECK(std::filesystem::exists(path));
}

}  // namespace crane::test
