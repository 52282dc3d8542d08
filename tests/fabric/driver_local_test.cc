// SPDX-License-Identifier: Apache-2.0
// GOAL    what one iteration of a node's loop may count on (consensus.h): all whose writes have
//         completed is committed by the next poll(), and each entry is told as soon as it is.
// METHOD  three replicas over shared memory in this thread, where writes complete at once.
// CHECKS  the calls of on_committed, and what status() says inside them.
// REPLAY  deterministic.
#include <time.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "consensus/consensus.h"
#include "tests/fabric/harness.h"

namespace crane::test {
namespace {

using consensus::Consensus;

std::uint64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

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

}  // namespace crane::test
