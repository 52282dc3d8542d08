// SPDX-License-Identifier: Apache-2.0
// Single steps of the protocol on instant memory.  Worlds with faults: tests/sim.
#include "consensus/core/replica.h"

#include <catch2/catch.hpp>

#include "tests/unit/consensus/led_group.h"

using namespace crane;
using namespace crane::consensus::core;

namespace {

constexpr std::uint64_t kMs = 1'000'000;

}  // namespace

TEST_CASE("consensus: a new group elects the smallest id and commits in one round", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  const auto index = g.propose(0);
  REQUIRE(index.ok());
  CHECK(g.nodes[0].core->committed() == index.value());
  const Entry& e = g.nodes[0].delivered.back();
  CHECK(e.type == 7);
  CHECK(e.grant == 9);
  CHECK(e.at.view == g.nodes[0].core->promised_view());
  // C3: no entry follows, so a flush sends the commit index in the commit cell.
  CHECK(g.nodes[1].delivered.size() < g.nodes[0].delivered.size());
  g.flush(0);
  CHECK(g.nodes[1].delivered.size() == g.nodes[0].delivered.size());
  CHECK(g.nodes[2].delivered.size() == g.nodes[0].delivered.size());
}

TEST_CASE("consensus: a replica whose server lags leaves the lead to another", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  g.step(1, ServerLagging{80 * kMs});
  g.kill(0);
  g.run_for(30 * kMs);
  CHECK(g.leader() == 2);
}

TEST_CASE("consensus: the only remaining replica leads, however late", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  g.step(1, ServerLagging{80 * kMs});
  g.step(2, ServerLagging{80 * kMs});
  g.kill(0);
  g.run_for(60 * kMs);
  CHECK(g.leader() > 0);
}

TEST_CASE("consensus: one replica alone is a group", "[R=1]") {
  InstantGroup g(1);
  g.start_all();
  g.run_for(10 * kMs);
  REQUIRE(g.leader() == 0);
  CHECK(g.propose(0).ok());
  CHECK(g.nodes[0].delivered.size() == 2);
}

TEST_CASE("consensus: only the leader takes proposals, and only the application's", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  CHECK(g.propose(1).error().code == Code::kNotLeader);
  CHECK(g.propose(0, 4096).error().code == Code::kBadArgument);
  Proposal p;
  p.type = kStart;
  CHECK(g.nodes[0].core->propose(p, {g.now_ns, 0}).error().code == Code::kBadArgument);
}

TEST_CASE("consensus: a leader's death is handled within milliseconds, nothing is lost", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  for (int i = 0; i < 5; ++i) REQUIRE(g.propose(0).ok());
  g.kill(0);
  g.run_for(20 * kMs);
  REQUIRE(g.leader() > 0);
  const auto leader = static_cast<unsigned>(g.leader());
  CHECK(g.nodes[leader].delivered.size() == 7);  // START, 5 inputs, START
  CHECK(g.propose(leader).ok());
}

TEST_CASE("consensus: a silent leader is suspected by pull-score and replaced", "[R=3, cut]") {
  InstantGroup g(3);
  elect_first(g);
  REQUIRE(g.propose(0).ok());
  g.nodes[0].cut = true;
  g.run_for(400 * kMs);
  CHECK((g.nodes[1].core->role() == Role::kLeader || g.nodes[2].core->role() == Role::kLeader));
  // C6, C8: the old leader, with work outstanding and no majority, steps down without a message.
  CHECK(g.propose(0).ok());
  g.run_for(1500 * kMs);
  CHECK(g.nodes[0].core->role() != Role::kLeader);
  CHECK(g.nodes[0].roles.back().role == Role::kFollower);
  // Its unfinished entries are truncated when it recovers (never proposed again: U12).
  g.nodes[0].cut = false;
  g.run_for(500 * kMs);
  REQUIRE(g.propose(static_cast<unsigned>(g.leader())).ok());
  g.flush(static_cast<unsigned>(g.leader()));
  CHECK(g.nodes[0].core->last() == g.nodes[1].core->last());
  CHECK(g.nodes[0].core->last() == g.nodes[2].core->last());
}

TEST_CASE("consensus: an election's time is not counted from a suspicion that passed",
          "[R=3, cut]") {
  InstantGroup g(3);
  elect_first(g);
  g.nodes[1].cut = true;
  g.run_for(300 * kMs);
  g.nodes[1].cut = false;
  g.run_for(5000 * kMs);
  REQUIRE(g.leader() == 0);
  g.kill(0);
  g.run_for(400 * kMs);
  REQUIRE(g.nodes[1].core->role() == Role::kLeader);
  CHECK(g.nodes[1].core->last_election().took_ns < 400 * kMs);
}

TEST_CASE("consensus: an election's time is not counted from the start of a process in its view",
          "[R=3, restart]") {
  InstantGroup g(3);
  elect_first(g);
  REQUIRE(g.propose(0).ok());
  g.flush(0);
  // Its memory holds an entry of this view: no leader has to repair its log.
  g.stop(1);
  g.restart(1, StartKind::kSurvived, nullptr);
  g.run_for(40'000 * kMs);
  REQUIRE(g.leader() == 0);
  CHECK(g.nodes[1].core->last_election().cause == ElectionCause::kFirst);
  CHECK(g.nodes[1].core->last_election().took_ns < 400 * kMs);
  g.kill(0);
  g.run_for(400 * kMs);
  REQUIRE(g.nodes[1].core->role() == Role::kLeader);
  CHECK(g.nodes[1].core->last_election().cause == ElectionCause::kDeath);
  CHECK(g.nodes[1].core->last_election().took_ns < 400 * kMs);
}

TEST_CASE("consensus: a refused pre-vote is answered once the voter notices the loss, too",
          "[R=3, late notice]") {
  InstantGroup g(3);
  elect_first(g);
  g.nodes[0].core.reset();
  g.step(1, PeerDown{ReplicaId{0}});
  g.step(1, Tick{});
  g.settle();
  REQUIRE(g.leader() == -1);  // the other one still trusts its leader
  g.step(2, PeerDown{ReplicaId{0}});
  g.settle();
  CHECK(g.leader() == 1);  // without another pre-vote
}

TEST_CASE("consensus: a leader that is observed to be stopped is replaced after a second look",
          "[R=3, pause]") {
  InstantGroup g(3);
  elect_first(g);
  const auto traffic = [&g](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      REQUIRE(g.propose(0).ok());
      g.flush(0);
      g.run_for(kMs);
    }
  };
  traffic(100);
  REQUIRE(g.leader() == 0);
  const View view = g.nodes[0].core->promised_view();
  g.nodes[0].stopped = true;
  g.run_for(2 * kMs);
  g.nodes[0].stopped = false;
  traffic(100);
  CHECK(g.nodes[0].core->promised_view() == view);  // one look was not enough
  g.nodes[0].stopped = true;
  g.run_for(6 * kMs);  // three periods
  CHECK(g.nodes[1].core->role() == Role::kLeader);
}

TEST_CASE("consensus: a follower refuses others while its leader is alive (L1)", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  const View view = g.nodes[1].core->promised_view();
  Message m{};
  m.type = MessageType::kRequest;
  m.from = 2;
  m.incarnation = kFirstIncarnation;
  m.log_id = g.config.log_id;
  m.view = make_view(view_counter(view) + 5, ReplicaId{2});
  g.step(1, MessageArrived{ReplicaId{2}, std::as_bytes(std::span(&m, 1))});
  CHECK(g.nodes[1].core->promised_view() == view);
  // A message of another group, or of an incarnation that was not admitted, is ignored (C5).
  m.transfer = 1;
  m.log_id ^= 1;
  g.step(1, MessageArrived{ReplicaId{2}, std::as_bytes(std::span(&m, 1))});
  m.log_id ^= 1;
  m.incarnation = 7;
  g.step(1, MessageArrived{ReplicaId{2}, std::as_bytes(std::span(&m, 1))});
  CHECK(g.nodes[1].core->promised_view() == view);
}

TEST_CASE("consensus: a leader that sees no majority's processes steps down (C8)", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  g.nodes[1].core.reset();
  g.step(0, PeerDown{ReplicaId{1}});
  CHECK(g.leader() == 0);
  g.nodes[2].core.reset();
  g.step(0, PeerDown{ReplicaId{2}});
  CHECK(g.nodes[0].core->role() == Role::kFollower);  // at once, with nothing outstanding
  CHECK(g.nodes[0].roles.back().role == Role::kFollower);
  g.run_for(500 * kMs);
  CHECK(g.leader() == -1);
  g.start(1, StartKind::kSurvived);
  g.step(0, PeerUp{ReplicaId{1}});
  g.run_for(500 * kMs);
  CHECK(g.leader() >= 0);
}

TEST_CASE("consensus: a leader that itself refuses to be replaced is believed", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  // From now on only the leader's refusal reaches one follower.
  g.nodes[0].cut = g.nodes[2].cut = true;
  Replica& follower = *g.nodes[1].core;
  const View view = follower.promised_view();
  Message m{};
  m.type = MessageType::kRefuse;
  m.from = m.leader = 0;
  m.incarnation = kFirstIncarnation;
  m.log_id = g.config.log_id;
  m.promised = view;
  m.view = make_view(view_counter(view) + 1, ReplicaId{1});
  for (int i = 0; i < 400 && follower.score().alive(); ++i) g.run_for(kMs);
  REQUIRE_FALSE(follower.score().alive());
  for (int i = 0; i < 400 && !follower.score().alive(); ++i) {
    g.run_for(kMs);
    g.step(1, MessageArrived{ReplicaId{0}, std::as_bytes(std::span(&m, 1))});
  }
  CHECK(follower.score().alive());
  CHECK(follower.leader() == ReplicaId{0});
  CHECK(follower.promised_view() == view);
}

TEST_CASE("consensus: an abdicating leader hands over at once and stays out", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  g.step(0, Abdicate{});
  g.settle();
  CHECK(g.leader() == 1);
  CHECK(g.nodes[0].roles.back().role == Role::kFollower);
  g.kill(1);
  g.run_for(300 * kMs);
  CHECK(g.leader() == 2);
}

TEST_CASE("consensus: an abdicating leader hands over to the replica that its owner names",
          "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  SECTION("if that follows") {
    g.step(0, Abdicate{ReplicaId{2}});
    g.settle();
    CHECK(g.leader() == 2);
  }
  SECTION("otherwise to the one that follows best") {
    g.kill(2);
    g.settle();
    g.step(0, Abdicate{ReplicaId{2}});
    g.settle();
    CHECK(g.leader() == 1);
  }
}

TEST_CASE("consensus: a replica that lost its memory neither votes nor leads (C5, U2)", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  REQUIRE(g.propose(0).ok());
  g.nodes[1].core.reset();
  g.lose_memory(1);
  g.start(1, StartKind::kLost);
  CHECK(g.nodes[1].core->role() == Role::kLearner);
  g.nodes[0].core.reset();
  g.step(2, PeerDown{ReplicaId{0}});
  g.run_for(1000 * kMs);
  CHECK(g.leader() == -1);  // {learner, C} is no majority
  CHECK(g.nodes[1].core->promised_view() == View{0});
}

TEST_CASE("consensus: a learner that restarts on its new memory stays a learner (C5)", "[R=3]") {
  InstantGroup g(3);
  g.lose_memory(1);
  g.start(1, StartKind::kLost);
  CHECK(g.nodes[1].cells[kPromiseCell][kIncarnation] == kFirstIncarnation + 1);
  g.nodes[1].core.reset();
  g.start(1, StartKind::kSurvived);
  g.settle();
  CHECK(g.nodes[1].core->role() == Role::kLearner);
}

TEST_CASE("consensus: a restart on surviving memory is a pause (C5)", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  for (int i = 0; i < 3; ++i) REQUIRE(g.propose(0).ok());
  g.flush(0);
  const View promised = g.nodes[1].core->promised_view();
  const Viewstamp last = g.nodes[1].core->last();
  g.nodes[1].core.reset();
  g.step(0, PeerDown{ReplicaId{1}});
  g.start(1, StartKind::kSurvived);
  g.settle();
  CHECK(g.nodes[1].core->promised_view() == promised);
  CHECK(g.nodes[1].core->last() == last);
  g.step(0, PeerUp{ReplicaId{1}});
  g.run_for(100 * kMs);
  // Its owner knows the leader although no entry arrived meanwhile.
  CHECK(g.nodes[1].roles.back().role == Role::kFollower);
  CHECK(g.nodes[1].roles.back().leader == ReplicaId{0});
  REQUIRE(g.propose(0).ok());
  g.flush(0);
  CHECK(g.nodes[1].core->last() == g.nodes[0].core->last());
  CHECK(g.leader() == 0);
}

TEST_CASE("consensus: a full ring refuses proposals and drains (C4)", "[R=3, small ring]") {
  InstantGroup g(3, 8192);
  elect_first(g);
  g.nodes[1].cut = g.nodes[2].cut = true;
  int taken = 0;
  while (g.propose(0, 500).ok()) ++taken;
  CHECK(taken > 2);
  CHECK(g.propose(0, 500).error().code == Code::kBusy);
  g.nodes[1].cut = g.nodes[2].cut = false;
  g.run_for(200 * kMs);
  REQUIRE(g.leader() == 0);
  for (int i = 0; i < 200; ++i) {
    if (!g.propose(0, 500).ok()) g.run_for(10 * kMs);
    g.flush(0);
  }
  CHECK(g.nodes[1].core->delivered() == g.nodes[0].core->delivered());
  CHECK(value(g.nodes[0].core->delivered()) > 150);
}

TEST_CASE("consensus: step is total, stale and senseless events change nothing (S3)", "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  const Viewstamp last = g.nodes[0].core->last();
  for (unsigned i = 0; i < 3; ++i) {
    for (std::uint64_t t = 0; t < 2000; ++t) {
      g.step(i, Completion{Token{t * 0x0003'0009'0001'0007U}, t % 2 == 0, {}});
    }
    g.step(i, Revoked{ReplicaId{2}});
    g.step(i, Permitted{ReplicaId{2}, Key{9}, true});
    g.step(i, PeerDown{ReplicaId{99}});
    g.step(i, PeerUp{ReplicaId{99}});
    g.step(i, MessageArrived{ReplicaId{1}, {}});
    g.step(i, Start{});
    g.step(i, LogArrived{});
  }
  g.run_for(300 * kMs);
  CHECK(g.leader() == 0);
  CHECK(g.nodes[0].core->last() == last);
}

TEST_CASE(
    "consensus: heartbeats are frequent under traffic, rare with only a server's own timers (C6)",
    "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  const auto beats_in_a_second = [&](std::uint64_t pause_ns) {
    const std::uint64_t before = g.nodes[0].cells[kStatusCell][kHeartbeat];
    for (std::uint64_t end = g.now_ns + 1000 * kMs; g.now_ns < end;) {
      REQUIRE(g.propose(0).ok());
      g.run_for(pause_ns);
    }
    return g.nodes[0].cells[kStatusCell][kHeartbeat] - before;
  };
  beats_in_a_second(100 * kMs);  // remaining traffic of the election
  CHECK(beats_in_a_second(100 * kMs) <= 2 * 1000 * kMs / g.config.period_idle_ns);
  beats_in_a_second(5 * kMs);
  CHECK(beats_in_a_second(5 * kMs) >= 1000 * kMs / g.config.period_active_ns / 4);
}

TEST_CASE("consensus: a connection under which only a commit index was written is closed (F5)",
          "[R=3]") {
  InstantGroup g(3);
  elect_first(g);
  const int leader = g.leader();
  REQUIRE(leader == 0);
  REQUIRE(g.propose(0).ok());
  g.step(0, PeerDown{ReplicaId{1}});
  const unsigned closed = g.nodes[0].closed;
  REQUIRE(closed > 0);
  g.step(0, PeerUp{ReplicaId{1}});
  g.run_for(100'000'000);
  REQUIRE(g.nodes[0].core->peer_state(ReplicaId{1}) == PeerState::kStreaming);
  g.flush(0);  // the follower has every entry: only the commit index is written
  g.step(0, PeerDown{ReplicaId{1}});
  CHECK(g.nodes[0].closed ==
        closed + 1);  // else a failed write would fail all later ones (FABRIC-F5)
}
