// SPDX-License-Identifier: Apache-2.0
// GOAL    Membership (CORE-M1..M8): lists and quorums, and single steps of changes on instant
//         memory. Changes under faults are in tests/sim.
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "tests/unit/consensus/led_group.h"

using namespace crane;
using namespace crane::consensus::core;

namespace {

using Kind = MemberChange::Kind;
constexpr std::uint64_t kMs = 1'000'000;

ReplicaId id_of(unsigned i) { return ReplicaId{static_cast<std::uint8_t>(i)}; }

Members any_members() {
  Members m;
  const auto n = *rc::gen::inRange(1, 40);
  for (int i = 0; i < n; ++i) {
    const auto id = id_of(static_cast<unsigned>(*rc::gen::inRange(0, int{kReplicasMax})));
    m.set(id, static_cast<MemberRole>(*rc::gen::inRange(0, 5)),
          *rc::gen::arbitrary<std::uint32_t>());
  }
  m.set(id_of(5), MemberRole::kVoter, 9);
  return m;
}

// A group of `slots` whose first `members` vote, with a leader.
struct Changing : InstantGroup {
  Changing(std::uint8_t slots, std::uint8_t members, std::uint64_t removed_leader_ns = 0)
      : InstantGroup(slots) {
    config.removed_leader_ns = removed_leader_ns;
    config.members = Members::first(members);
    elect_first(*this);
  }
  void add_voter(unsigned by, unsigned id) {
    REQUIRE(change(by, Kind::kAdd, id).ok());
    run_for(200 * kMs);
    REQUIRE(change(by, Kind::kPromote, id).ok());
    run_for(100 * kMs);
    REQUIRE(nodes[id].core->role() == Role::kFollower);
  }
  const Members& members(unsigned id) { return nodes[id].core->members(); }
};

}  // namespace

TEST_CASE("members: a list survives its bytes, other bytes are rejected (M1)", "[members]") {
  CHECK(rc::check("decode(encode(m)) == m", [] {
    const Members m = any_members();
    std::vector<std::byte> bytes(kMembersBytesMax);
    bytes.resize(m.encode(bytes));
    RC_ASSERT(bytes.size() == members_bytes(m.count()));
    RC_ASSERT(Members::decode(bytes) == m);
    const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size());
    RC_ASSERT(!Members::decode(std::span{bytes}.first(cut)));
  }));
  CHECK(rc::check("decode is total", [] {
    auto bytes = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
    const auto m = Members::decode(std::as_bytes(std::span{bytes}));
    RC_ASSERT(!m || m->voters() > 0);
  }));
  Members none;
  std::vector<std::byte> bytes(members_bytes(0));
  none.encode(bytes);
  CHECK_FALSE(Members::decode(bytes));  // a group without voters
}

TEST_CASE("members: majorities of lists one vote apart meet (M2)", "[members]") {
  CHECK(rc::check("a quorum of each, disjoint, does not exist", [] {
    const Members before = any_members();
    Members after = before;
    const auto id = id_of(static_cast<unsigned>(*rc::gen::inRange(0, int{kReplicasMax})));
    after.set(id, before.voter(id) ? MemberRole::kLearner : MemberRole::kVoter, 77);
    if (after.voters() == 0) return;
    const auto mask =
        *rc::gen::container<std::vector<bool>>(kReplicasMax, rc::gen::arbitrary<bool>());
    const auto in = [&](ReplicaId r) { return bool{mask[value(r)]}; };
    const auto out = [&](ReplicaId r) { return !mask[value(r)]; };
    RC_ASSERT(!(before.quorum_of(in) && after.quorum_of(out)));
  }));
  Members m = Members::first(3);
  m.set(ReplicaId{3}, MemberRole::kLearner, 1);
  const auto learner_and_one = [](ReplicaId r) { return value(r) == 3 || value(r) == 0; };
  CHECK_FALSE(m.quorum_of(learner_and_one));
  CHECK_FALSE(Members{}.quorum_of([](ReplicaId) { return true; }));
}

TEST_CASE("members: 3 grow to 5, which survive the loss of two", "[members]") {
  Changing g(5, 3);
  CHECK(g.nodes[3].core->role() == Role::kLearner);
  for (int i = 0; i < 5; ++i) REQUIRE(g.propose(0).ok());
  REQUIRE(g.change(0, Kind::kAdd, 3).ok());
  g.run_for(200 * kMs);
  g.flush(0);
  CHECK(g.nodes[3].core->role() == Role::kLearner);  // gets the log, has no vote (CORE-M6)
  CHECK(g.nodes[3].delivered.size() == g.nodes[0].delivered.size());
  CHECK(g.members(0).voters() == 3);
  REQUIRE(g.change(0, Kind::kPromote, 3).ok());
  g.run_for(100 * kMs);
  CHECK(g.nodes[3].core->role() == Role::kFollower);
  g.add_voter(0, 4);
  CHECK(g.members(0).voters() == 5);
  g.nodes[0].core.reset();
  g.nodes[1].core.reset();
  for (unsigned i = 2; i < 5; ++i) {
    g.step(i, PeerDown{ReplicaId{0}});
    g.step(i, PeerDown{ReplicaId{1}});
  }
  g.run_for(300 * kMs);
  REQUIRE(g.leader() >= 2);
  CHECK(g.propose(static_cast<unsigned>(g.leader())).ok());
  CHECK(g.nodes[static_cast<unsigned>(g.leader())].core->backlog() == 0);
}

TEST_CASE("members: an analysis replica gets the log and never a vote (M7)", "[members]") {
  Changing g(4, 2);
  g.start_analysis(3);
  REQUIRE(g.change(0, Kind::kAddAnalysis, 3).ok());
  g.run_for(200 * kMs);
  for (int i = 0; i < 5; ++i) REQUIRE(g.propose(0).ok());
  g.run_for(100 * kMs);
  g.flush(0);
  CHECK(g.members(0).role(ReplicaId{3}) == MemberRole::kAnalysis);
  CHECK(g.nodes[3].delivered.size() == g.nodes[0].delivered.size());
  const auto promoted = g.change(0, Kind::kPromote, 3);
  CHECK(promoted.error().code == Code::kBadArgument);
  CHECK(std::string(promoted.error().what) == "an analysis replica never votes");
  CHECK(g.nodes[0].core->transfer(ReplicaId{3}, {g.now_ns, 0}).error().code == Code::kBadArgument);
  // With the leader it is no majority, and it does not prevent one.
  g.nodes[1].cut = true;
  REQUIRE(g.propose(0).ok());
  g.run_for(50 * kMs);
  CHECK(g.nodes[0].core->backlog() > 0);
  g.nodes[0].core.reset();
  for (unsigned i = 1; i < 4; ++i) g.step(i, PeerDown{ReplicaId{0}});
  g.run_for(2000 * kMs);
  CHECK(g.nodes[3].core->role() == Role::kLearner);
  CHECK(g.nodes[3].core->leading_view() == View{0});
}

TEST_CASE("members: an analysis replica and a learner take no other's place (M7)", "[members]") {
  Changing g(5, 2);
  REQUIRE(g.change(0, Kind::kAdd, 3).ok());
  g.start_analysis(3);
  g.run_for(200 * kMs);
  CHECK(g.members(0).role(ReplicaId{3}) == MemberRole::kLearner);
  CHECK(g.members(0).incarnation(ReplicaId{3}) != g.nodes[3].incarnation);
  CHECK(g.nodes[3].delivered.empty());
  CHECK(g.nodes[3].core->role() == Role::kRemoved);
  CHECK(g.change(0, Kind::kPromote, 3).error().code == Code::kBusy);
  REQUIRE(g.change(0, Kind::kAddAnalysis, 4).ok());
  g.run_for(200 * kMs);
  CHECK(g.members(0).incarnation(ReplicaId{4}) == kAnyIncarnation);
  CHECK(g.nodes[4].delivered.empty());
  // Each takes its own place.
  REQUIRE(g.change(0, Kind::kRemove, 3).ok());
  g.run_for(100 * kMs);
  REQUIRE(g.change(0, Kind::kAddAnalysis, 3).ok());
  g.start_analysis(3);
  g.run_for(200 * kMs);
  CHECK(g.members(0).role(ReplicaId{3}) == MemberRole::kAnalysis);
  CHECK_FALSE(g.nodes[3].delivered.empty());
}

TEST_CASE("members: no list turns an analysis replica into another member (M7)", "[members]") {
  Members before = Members::first(3);
  before.set(ReplicaId{3}, MemberRole::kAnalysis, 7);
  Members next = before;
  CHECK(next.keeps_analysis(before));
  next.set(ReplicaId{3}, MemberRole::kAnalysis, 8);
  CHECK(next.keeps_analysis(before));
  next.remove(ReplicaId{3});
  CHECK(next.keeps_analysis(before));
  CHECK(before.keeps_analysis(next));
  for (const auto role : {MemberRole::kLearner, MemberRole::kReturning, MemberRole::kVoter}) {
    next = before;
    next.set(ReplicaId{3}, role, 7);
    CHECK_FALSE(next.keeps_analysis(before));
    CHECK_FALSE(before.keeps_analysis(next));
  }
}

TEST_CASE("members: invalid changes are refused, and only one change runs at a time (M4)",
          "[members]") {
  Changing g(4, 3);
  CHECK(g.change(1, Kind::kAdd, 3).error().code == Code::kNotLeader);
  CHECK(g.change(0, Kind::kAdd, 1).error().code == Code::kBadArgument);
  CHECK(g.change(0, Kind::kAdd, 9).error().code == Code::kBadArgument);
  CHECK(g.change(0, Kind::kPromote, 1).error().code == Code::kBadArgument);
  CHECK(g.change(0, Kind::kRemove, 3).error().code == Code::kBadArgument);
  g.nodes[3].cut = true;
  REQUIRE(g.change(0, Kind::kAdd, 3).ok());
  CHECK(g.change(0, Kind::kPromote, 3).error().code == Code::kBusy);  // it has no entries yet
  g.nodes[1].cut = g.nodes[2].cut = true;
  g.run_for(20 * kMs);
  REQUIRE(g.change(0, Kind::kRemove, 3).ok());
  CHECK(g.change(0, Kind::kAdd, 3).error().code == Code::kBusy);
  // With no other voter running, a voter is not removed: the rest would be no majority.
  g.nodes[1].cut = g.nodes[2].cut = g.nodes[3].cut = false;
  g.run_for(500 * kMs);
  REQUIRE(g.leader() == 0);
  g.nodes[1].cut = g.nodes[2].cut = true;
  REQUIRE(g.propose(0).ok());
  CHECK(g.change(0, Kind::kRemove, 1).error().code == Code::kBusy);
}

TEST_CASE("members: a CONFIG is in force from its append until its truncation (M3)", "[members]") {
  Changing g(4, 3);
  for (unsigned i = 1; i < 4; ++i) g.nodes[i].cut = true;
  REQUIRE(g.change(0, Kind::kAdd, 3).ok());
  CHECK(g.members(0).role(ReplicaId{3}) == MemberRole::kLearner);
  CHECK(g.nodes[0].core->changing());
  g.nodes[0].cut = true;
  for (unsigned i = 1; i < 4; ++i) g.nodes[i].cut = false;
  g.run_for(2000 * kMs);
  REQUIRE(g.leader() > 0);
  g.nodes[0].cut = false;
  g.run_for(500 * kMs);
  CHECK_FALSE(g.members(0).member(ReplicaId{3}));
  CHECK_FALSE(g.nodes[0].core->changing());
  CHECK(g.nodes[0].core->role() == Role::kFollower);
}

TEST_CASE("members: the leader removes itself, hands over, and ends", "[members]") {
  Changing g(3, 3);
  for (int i = 0; i < 5; ++i) REQUIRE(g.propose(0).ok());
  REQUIRE(g.change(0, Kind::kRemove, 0).ok());
  g.run_for(100 * kMs);
  CHECK(g.nodes[0].core->role() == Role::kRemoved);
  REQUIRE(g.leader() > 0);
  const auto leader = static_cast<unsigned>(g.leader());
  CHECK(g.nodes[leader].core->last_election().cause == ElectionCause::kTransfer);
  CHECK(g.members(leader).voters() == 2);
  CHECK(g.propose(leader).ok());
  CHECK(g.nodes[leader].core->backlog() == 0);
  // Restarted on its memory, it learns of its removal.
  g.start(0, StartKind::kSurvived);
  g.run_for(500 * kMs);
  CHECK(g.nodes[0].core->role() == Role::kRemoved);
}

TEST_CASE("members: a removed leader continues for a moment, then hands over", "[members]") {
  Changing g(3, 3, 30 * kMs);
  REQUIRE(g.change(0, Kind::kRemove, 0).ok());
  g.run_for(20 * kMs);
  CHECK(g.nodes[0].core->role() == Role::kLeader);
  CHECK_FALSE(g.nodes[0].core->keeps_leading());
  CHECK(g.propose(0).ok());
  CHECK(g.nodes[0].core->backlog() == 0);
  g.run_for(100 * kMs);
  CHECK(g.nodes[0].core->role() == Role::kRemoved);
  REQUIRE(g.leader() > 0);
  CHECK(g.nodes[static_cast<unsigned>(g.leader())].core->last_election().cause !=
        ElectionCause::kSuspicion);
}

TEST_CASE("members: a voter stays until a majority of the others follows closely", "[members]") {
  Changing g(3, 3);
  g.nodes[2].late = true;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(g.propose(0, 1000).ok());
    g.flush(0);
  }
  REQUIRE(g.nodes[0].core->peer_state(ReplicaId{2}) == PeerState::kStreaming);
  REQUIRE(g.nodes[0].core->backlog() == 0);
  // If 1 were removed now, entries that 2 lacks could leave the ring before 2 has the CONFIG, and
  // it could never be committed.
  const auto early = g.change(0, Kind::kRemove, 1);
  REQUIRE(!early.ok());
  CHECK(early.error().code == Code::kBusy);
  g.nodes[2].late = false;
  g.release(0);
  CHECK(g.change(0, Kind::kRemove, 1).ok());
}

TEST_CASE("members: a removed follower learns of it", "[members]") {
  Changing g(3, 3);
  REQUIRE(g.change(0, Kind::kRemove, 2).ok());
  g.run_for(100 * kMs);
  CHECK(g.nodes[2].core->role() == Role::kRemoved);
  CHECK(g.leader() == 0);
  CHECK(g.propose(0).ok());
}

TEST_CASE("members: a replica that took no entry before its removal learns of it, too",
          "[members]") {
  Changing g(4, 3);
  auto& added = g.nodes[3];
  added.stalled = true;
  g.add_voter(0, 3);
  g.flush(0);
  REQUIRE(added.core->committed() > Index{0});
  added.core.reset();
  g.step(0, PeerDown{ReplicaId{3}});
  REQUIRE(added.cells[kPromiseCell][kLowWaterPos] == 0);
  REQUIRE(g.change(0, Kind::kRemove, 3).ok());
  g.start(3, StartKind::kSurvived);
  g.settle();
  CHECK(added.core->role() == Role::kFollower);  // by its own log
  g.step(0, PeerUp{ReplicaId{3}});
  g.run_for(500 * kMs);
  CHECK(added.core->role() == Role::kRemoved);
}

TEST_CASE("members: a replica that lost its memory recovers and votes again (C5, U2)",
          "[members]") {
  Changing g(3, 3);
  for (int i = 0; i < 5; ++i) REQUIRE(g.propose(0).ok());
  g.lose_memory(1);
  g.step(0, PeerDown{ReplicaId{1}});
  g.step(2, PeerDown{ReplicaId{1}});
  g.start(1, StartKind::kLost);
  CHECK(g.nodes[1].core->role() == Role::kLearner);
  g.step(0, PeerUp{ReplicaId{1}});
  g.run_for(500 * kMs);
  CHECK(g.nodes[1].core->role() == Role::kFollower);
  CHECK(g.members(0).admits(ReplicaId{1}, g.nodes[1].incarnation));
  CHECK(g.members(0).voters() == 3);
  REQUIRE(g.propose(0).ok());
  g.flush(0);
  CHECK(g.nodes[1].core->delivered() == g.nodes[0].core->delivered());
  // Its vote counts: without the third replica, the two commit.
  g.nodes[2].core.reset();
  g.step(0, PeerDown{ReplicaId{2}});
  REQUIRE(g.propose(0).ok());
  CHECK(g.nodes[0].core->backlog() == 0);
}

TEST_CASE("members: a long history is committed as it arrives, not at its end (C3)", "[members]") {
  InstantGroup g(3);
  g.config.write_bytes_max = 1024;
  g.config.in_flight_bytes_max = 2048;
  elect_first(g);
  for (int i = 0; i < 60; ++i) REQUIRE(g.propose(0, 500).ok());
  const auto hand_over = [&g](unsigned from,
                              unsigned to) {  // to a follower that START reaches last
    REQUIRE(g.nodes[from].core->transfer(id_of(to), {g.now_ns, 0}).ok());
    g.step(from, Tick{});
    g.settle();
    g.run_for(20 * kMs);
    REQUIRE(g.leader() == static_cast<int>(to));
  };
  hand_over(0, 1);
  const InstantGroup::Node& newcomer = g.nodes[2];
  const auto delivered = [&] { return value(newcomer.core->delivered()); };
  const auto has_start = [&] {
    return newcomer.core->last().view == newcomer.core->promised_view();
  };
  g.lose_memory(2);
  g.nodes[2].late = true;
  for (const unsigned id : {0U, 1U}) g.step(id, PeerDown{ReplicaId{2}});
  g.start(2, StartKind::kLost);
  for (const unsigned id : {0U, 1U}) g.step(id, PeerUp{ReplicaId{2}});
  g.run_for(500 * kMs);
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before = delivered();
    g.release(1);
    REQUIRE(!has_start());
    CHECK(delivered() > before);
  }
  // The next leader continues where this one ended, with the entries that came meanwhile.
  const std::uint64_t came = value(newcomer.core->last().index);
  REQUIRE(came > delivered());
  hand_over(1, 0);
  g.run_for(500 * kMs);
  REQUIRE(!has_start());
  CHECK(delivered() == came);
  g.nodes[2].late = false;
  g.release(0);
  g.run_for(500 * kMs);
  REQUIRE(g.propose(0).ok());
  g.flush(0);
  CHECK(newcomer.core->delivered() == g.nodes[0].core->delivered());
}

TEST_CASE("members: a process ignores kProgress that was meant for the previous one (C3)",
          "[members]") {
  InstantGroup g(3);
  elect_first(g);
  for (int i = 0; i < 5; ++i) REQUIRE(g.propose(0).ok());  // the last entry's commit is not sent
  Message late{};
  late.type = MessageType::kProgress;
  late.log_id = g.config.log_id;
  late.incarnation = g.nodes[0].incarnation;
  late.view = late.promised = g.nodes[0].core->promised_view();
  late.last = late.commit = g.nodes[0].core->last();
  g.stop(2);
  g.nodes[0].cut = g.nodes[1].cut = true;
  g.restart(2, StartKind::kSurvived, nullptr);
  const Replica& again = *g.nodes[2].core;
  REQUIRE(again.promised_view() == late.view);
  REQUIRE(again.last().index == late.last.index);
  const Index committed = again.committed();
  REQUIRE(committed < late.commit.index);
  g.step(2, MessageArrived{ReplicaId{0}, std::as_bytes(std::span(&late, 1))});
  CHECK(again.committed() == committed);
}

TEST_CASE("members: leadership goes to the named voter", "[members]") {
  Changing g(3, 3);
  CHECK(g.nodes[1].core->transfer(ReplicaId{0}, {g.now_ns, 0}).error().code == Code::kNotLeader);
  CHECK(g.nodes[0].core->transfer(ReplicaId{0}, {g.now_ns, 0}).error().code == Code::kBadArgument);
  REQUIRE(g.propose(0).ok());
  REQUIRE(g.nodes[0].core->transfer(ReplicaId{2}, {g.now_ns, 0}).ok());
  g.step(0, Tick{});
  g.settle();
  g.run_for(20 * kMs);
  CHECK(g.leader() == 2);
  CHECK(g.nodes[2].core->last_election().cause == ElectionCause::kTransfer);
  // To a voter that does not answer: proposals wait, then the old leader continues.
  g.nodes[1].cut = true;
  g.run_for(5 * kMs);
  if (g.nodes[2].core->transfer(ReplicaId{1}, {g.now_ns, 0}).ok()) {
    g.run_for(500 * kMs);
  }
  REQUIRE(g.leader() >= 0);
  CHECK(g.propose(static_cast<unsigned>(g.leader())).ok());
}

TEST_CASE("members: a restart knows the members even if their CONFIG left the ring (M3)",
          "[members]") {
  InstantGroup g(4, 8192);
  g.config.members = Members::first(3);
  elect_first(g);
  REQUIRE(g.change(0, Kind::kRemove, 2).ok());
  g.run_for(100 * kMs);
  for (int i = 0; i < 100; ++i) {
    if (!g.propose(0, 500).ok()) g.run_for(10 * kMs);
    g.flush(0);
  }
  CHECK(g.nodes[0].core->end_pos() > 4 * 8192);
  g.nodes[1].core.reset();
  g.start(1, StartKind::kSurvived);
  g.settle();
  CHECK(g.nodes[1].core->members().voters() == 2);
  CHECK(g.nodes[1].core->role() == Role::kFollower);
}
