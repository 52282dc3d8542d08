// SPDX-License-Identifier: Apache-2.0
// GOAL    What a replica may propose, and when it serves, follow from its role alone.
// METHOD  A Leadership without consensus: the test elects, deposes, and is the log.
// CHECKS  LEAD-1, LEAD-2, LEAD-3; stamps that never decrease; busy proposals.
#include "proxy/replica/role/leadership.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace crane;
using namespace crane::replica;
using consensus::Role;

namespace {

constexpr View kFirst{256}, kSecond{513};

struct World {
  bool full = false;
  std::vector<EntryType> log;
  std::vector<std::int64_t> stamps;
  Leadership leadership;

  Result<Index> append(const Leadership::Proposal& proposal) {
    if (full) return Error{Code::kBusy, 0, "full"};
    log.push_back(proposal.type);
    stamps.push_back(proposal.stamp_ns);
    return Index{log.size()};
  }
  bool propose(EntryType type, std::int64_t now_ns = 1000) {
    const auto proposal = leadership.begin_proposal(type, now_ns);
    if (!proposal.ok()) return false;
    const Result<Index> index = append(proposal.value());
    leadership.proposed(proposal.value(), index, now_ns);
    return index.ok();
  }
  bool start() { return propose(EntryType::kStart); }
  void lead(View view = kFirst) { leadership.role(Role::kLeader, view, ReplicaId{0}); }
};

}  // namespace

TEST_CASE_METHOD(World, "a follower proposes nothing", "[leadership][LEAD-3]") {
  leadership.role(Role::kFollower, kFirst, ReplicaId{1});
  CHECK_FALSE(propose(EntryType::kData));
  CHECK_FALSE(leadership.started());
  CHECK(leadership.leader() == ReplicaId{1});
  CHECK(log.empty());
}

TEST_CASE_METHOD(World, "a leader serves when its server admitted its START",
                 "[leadership][LEAD-2]") {
  lead();
  CHECK(leadership.leads());
  CHECK_FALSE(leadership.started());
  REQUIRE(start());
  CHECK(leadership.started());
  CHECK_FALSE(leadership.admitted(Index{0}));
  CHECK(leadership.admitted(Index{1}));
  CHECK(log == std::vector{EntryType::kStart});
}

TEST_CASE_METHOD(World, "START is proposed again in each view that this node leads",
                 "[leadership][LEAD-1]") {
  lead();
  REQUIRE(start());
  lead(kSecond);  // deposed and elected again, unnoticed
  CHECK_FALSE(leadership.started());
  CHECK_FALSE(propose(EntryType::kData));  // START comes first
  CHECK_FALSE(leadership.admitted(Index{9}));
  CHECK(leadership.take_deposed());
  CHECK_FALSE(leadership.take_deposed());
  REQUIRE(start());
  CHECK(log == std::vector{EntryType::kStart, EntryType::kStart});
  CHECK_FALSE(leadership.admitted(Index{1}));
  CHECK(leadership.admitted(Index{2}));
}

TEST_CASE_METHOD(World, "a deposed leader proposes nothing more", "[leadership][LEAD-3]") {
  lead();
  REQUIRE(start());
  leadership.role(Role::kFollower, kSecond, ReplicaId{1});
  CHECK_FALSE(leadership.leads());
  CHECK_FALSE(propose(EntryType::kData));
  CHECK(leadership.has_change());
  CHECK(leadership.take_deposed());
  CHECK(leadership.take_changed());
  CHECK_FALSE(leadership.has_change());
}

TEST_CASE_METHOD(World, "a START that found no room is proposed in a later round",
                 "[leadership][LEAD-1]") {
  lead();
  full = true;
  CHECK_FALSE(start());
  CHECK(leadership.busy());
  CHECK_FALSE(leadership.started());
  full = false;
  leadership.ask_again();
  CHECK_FALSE(leadership.busy());
  CHECK(start());
}

TEST_CASE_METHOD(World, "a proposal of the stall rule is not waited for", "[leadership]") {
  lead();
  REQUIRE(start());
  REQUIRE(propose(EntryType::kData));
  REQUIRE(propose(EntryType::kPassed));
  REQUIRE(propose(EntryType::kPreempt));
  CHECK(leadership.proposed() == Index{2});
}

TEST_CASE_METHOD(World, "stamps continue from what was committed", "[leadership]") {
  leadership.committed({kFirst, Index{1}}, 5'000'000, 1000);
  lead();
  REQUIRE(start());
  CHECK(stamps.back() == 5'000'000);
  REQUIRE(propose(EntryType::kTime));
  CHECK(stamps[1] >= stamps[0]);
}

TEST_CASE_METHOD(World, "a new leader's stamps wait until its clients were read",
                 "[leadership][CLOCK-2]") {
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  leadership.role(Role::kFollower, kFirst, ReplicaId{1});
  leadership.committed({kFirst, Index{7}}, 100 * kSecond_ns, kSecond_ns);
  lead(kSecond);
  const auto propose_at = [this](EntryType type, std::int64_t now_ns) {
    REQUIRE(propose(type, now_ns));
    return stamps.back();
  };
  REQUIRE(propose(EntryType::kStart, 21 * kSecond_ns));
  CHECK(stamps.back() == 100 * kSecond_ns);
  CHECK(leadership.waits_for_inputs());
  leadership.committed({kSecond, Index{1}}, stamps.back(), 21 * kSecond_ns);
  CHECK(propose_at(EntryType::kData, 21 * kSecond_ns) == 100 * kSecond_ns);
  leadership.resume_time(21 * kSecond_ns);
  CHECK_FALSE(leadership.waits_for_inputs());
  CHECK(propose_at(EntryType::kTime, 21 * kSecond_ns) == 100 * kSecond_ns);
}

TEST_CASE_METHOD(World, "a leader without a majority stops its stamps until an entry is committed",
                 "[leadership][CLOCK-3]") {
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  lead();
  REQUIRE(start());
  leadership.committed({kFirst, Index{1}}, stamps.back(), 2000);
  leadership.runs(2000, 2000);
  REQUIRE(propose(EntryType::kData));
  const std::uint64_t outages = leadership.outages();
  leadership.runs(7 * kSecond_ns, 7 * kSecond_ns);
  CHECK_FALSE(leadership.waits_for_inputs());
  CHECK(leadership.now(7 * kSecond_ns) < kSecond_ns);
  leadership.committed({kFirst, Index{2}}, stamps.back(), 7 * kSecond_ns);
  CHECK(leadership.waits_for_inputs());
  CHECK(leadership.outages() == outages + 1);
}
