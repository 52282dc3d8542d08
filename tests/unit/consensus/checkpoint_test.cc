// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica whose server was restored from a checkpoint joins the log at that place: it
//         delivers all later entries, once, and has no more rights than before (C5, CORE-C6,
//         CORE-M6).
// METHOD  Single steps on instant memory.  Worlds with faults: tests/sim, crane-sim --checkpoints.
//         The facts' bytes are those of consensus/driver/facts.h.
#include <catch2/catch.hpp>

#include "consensus/core/replica.h"
#include "consensus/driver/facts.h"
#include "tests/unit/consensus/core_harness.h"

using namespace crane;
using namespace crane::consensus::core;

namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kRing = 8192;

struct Group : InstantGroup {
  explicit Group(Durability durability = Durability::kMemory, std::uint8_t slots = 3)
      : InstantGroup(slots, kRing) {
    config.durability = durability;
    config.members = Members::first(3);
    start_all();
    settle_down();
    REQUIRE(leader() == 0);
  }
  void settle_down() {
    run_for(300 * kMs);
    for (unsigned i = 0; i < nodes.size(); ++i) {
      if (nodes[i].core) flush(i);
    }
    run_for(20 * kMs);
  }
  void work(unsigned entries, unsigned by = 0) {
    for (unsigned i = 0; i < entries; ++i) {
      REQUIRE(propose(by, 300).ok());
      for (unsigned id = 0; id < nodes.size(); ++id) {
        if (nodes[id].core) flush(id);
      }
    }
  }
  Replica& core(unsigned id) { return *nodes[id].core; }
  // It delivered all entries after `from` that the leader has, in order, each once.
  void check_delivered_behind(unsigned id, const Cursor& from, unsigned by = 0) {
    std::uint64_t at = value(from.last.index);
    for (const Entry& e : nodes[id].delivered) REQUIRE(value(e.at.index) == ++at);
    CHECK(at == value(core(by).delivered()));
  }
};

}  // namespace

TEST_CASE("checkpoint: on surviving memory the server gets missed entries from the ring",
          "[R=3][CORE-C6]") {
  Group g;
  g.work(5);
  const Checkpoint c = g.take_checkpoint(1);  // of another replica
  g.work(12);
  g.settle_down();
  g.stop(2);
  g.work(3);
  g.restart(2, StartKind::kSurvived, &c);
  CHECK(g.nodes[2].fatal.empty());
  g.settle_down();
  g.check_delivered_behind(2, c.at);
  CHECK(g.core(2).role() == Role::kFollower);
  g.work(30);  // more than a ring
  g.check_delivered_behind(2, c.at);
}

TEST_CASE("checkpoint: a new server gets all entries while the ring holds the first one",
          "[R=3][CORE-C6]") {
  Group g;
  g.work(8);
  g.settle_down();
  const Checkpoint none{{}, {}, {{}, Members::first(3)}};
  g.stop(2);
  g.restart(2, StartKind::kSurvived, &none);
  g.settle_down();
  g.check_delivered_behind(2, {});
  g.work(40);
  g.settle_down();
  g.stop(2);
  g.restart(2, StartKind::kSurvived, &none);
  CHECK(g.core(2).checkpoint_too_old());
  CHECK(g.nodes[2].delivered.empty());
}

TEST_CASE("checkpoint: a place older than the ring, or incomplete in it, is refused",
          "[R=3][CORE-C6]") {
  Group g;
  g.work(4);
  const Checkpoint c = g.take_checkpoint(2);
  const bool lapped = GENERATE(true, false);
  g.work(lapped ? 40 : 12);
  g.settle_down();
  g.stop(2);
  if (!lapped) g.nodes[2].memory[(c.at.pos + 1000) % kRing] ^= std::byte{1};
  g.restart(2, StartKind::kSurvived, &c);
  CHECK(g.core(2).checkpoint_too_old());
  CHECK(g.core(2).role() == Role::kFailed);
  CHECK(g.nodes[2].delivered.empty());
  // A newer one helps.
  const Checkpoint newer = g.take_checkpoint(1);
  g.stop(2);
  if (!lapped) g.nodes[2].memory[(c.at.pos + 1000) % kRing] ^= std::byte{1};
  g.restart(2, StartKind::kSurvived, &newer);
  g.settle_down();
  g.check_delivered_behind(2, newer.at);
  CHECK(g.core(2).role() == Role::kFollower);
}

// GOAL    A replica that lost its memory is admitted again, even if it started twice before a
//         leader heard of it.
// METHOD  Its second start finds a log of the view in force, which no leader has written, and the
//         leader's messages count for it: there was a change of members since.
TEST_CASE("checkpoint: a replica that is not admitted yet asks to join, whatever its log holds",
          "[R=3][C5]") {
  Group g;
  g.work(5);
  g.settle_down();
  const Checkpoint c = g.take_checkpoint(1);
  g.stop(1);
  g.lose_memory(1);
  g.restart(1, StartKind::kLost, &c);
  g.run_for(500 * kMs);
  REQUIRE(g.core(0).config_at() > c.config.at);
  g.stop(2);
  g.lose_memory(2);
  g.nodes[2].cut = true;
  g.restart(2, StartKind::kLost, &c);
  g.stop(2);
  g.restart(2, StartKind::kSurvived, &c);
  REQUIRE(g.core(2).role() == Role::kLearner);
  REQUIRE(g.core(2).last() == c.at.last);
  g.run_for(600 * kMs);  // it asks rarely now, and the leader contacts it first
  g.nodes[2].cut = false;
  g.step(0, PeerUp{ReplicaId{2}});
  g.run_for(2000 * kMs);
  CHECK(g.core(2).role() == Role::kFollower);
  CHECK(g.core(0).members().voter(ReplicaId{2}));
}

TEST_CASE("checkpoint: entries that are still to be delivered again are not overwritten",
          "[R=3][CORE-C4]") {
  Group g;
  g.work(3);
  const Checkpoint c = g.take_checkpoint(2);
  g.work(14);
  g.settle_down();
  g.stop(2);
  g.nodes[2].stalled = true;  // the server takes no entries for a while
  g.restart(2, StartKind::kSurvived, &c);
  for (int i = 0; i < 60; ++i) {
    (void)g.propose(0, 300);
    for (unsigned id = 0; id < 3; ++id) g.flush(id);
    g.run_for(5 * kMs);
  }
  CHECK(g.core(2).end_pos() <= c.at.pos + kRing);
  g.nodes[2].stalled = false;
  g.flush(2);
  CHECK(g.nodes[2].fatal.empty());
  std::uint64_t at = value(c.at.last.index);
  for (const Entry& e : g.nodes[2].delivered) REQUIRE(value(e.at.index) == ++at);
  CHECK(at >= value(c.at.last.index) + 14);
}

TEST_CASE(
    "checkpoint: entries that the server holds after the low-water mark are not delivered again",
    "[R=3]") {
  Group g;
  g.work(5);
  g.settle_down();  // this publishes the low-water mark
  g.work(1);
  const Checkpoint c = g.take_checkpoint(2);
  REQUIRE(g.nodes[2].cells[kPromiseCell][kLowWaterIndex] < value(c.at.last.index));
  g.stop(2);
  g.restart(2, StartKind::kSurvived, &c);
  CHECK(g.core(2).last().index >= c.at.last.index);
  CHECK(g.core(2).committed() >= c.at.last.index);
  g.work(2);
  g.settle_down();
  g.check_delivered_behind(2, c.at);
  CHECK(g.core(2).role() == Role::kFollower);
}

TEST_CASE("checkpoint: a lapped replica continues from a newer one and is still a voter",
          "[R=3][C5][L4]") {
  Group g;
  g.work(2);
  g.nodes[2].cut = true;
  g.work(60);
  g.nodes[2].cut = false;
  g.run_for(1000 * kMs);
  REQUIRE(g.core(2).needs_checkpoint());
  REQUIRE(g.core(0).peer_state(ReplicaId{2}) == PeerState::kBehind);
  const Checkpoint c = g.take_checkpoint(1);
  const bool seen = GENERATE(true, false);
  if (seen) {
    g.stop(2);
    g.restart(2, StartKind::kSurvived, &c);
  } else {  // no fabric reports its death: the leader keeps sending kBehind
    g.nodes[2].core.reset();
    g.nodes[2].delivered.clear();
    g.start(2, StartKind::kSurvived, &c);
  }
  g.run_for(1000 * kMs);
  CHECK_FALSE(g.core(2).needs_checkpoint());
  CHECK(g.core(2).role() == Role::kFollower);
  CHECK(g.core(0).peer_state(ReplicaId{2}) == PeerState::kStreaming);
  CHECK(g.core(0).config_at() == Viewstamp{});  // no CONFIG was needed
  g.work(3);
  g.settle_down();
  g.check_delivered_behind(2, c.at);
  // The group needs its vote now.
  g.stop(1);
  g.work(3);
  g.check_delivered_behind(2, c.at);
}

TEST_CASE("checkpoint: a replica that lost its memory begins there, learns, votes and leads",
          "[R=3][CORE-M6]") {
  Group g;
  g.work(40);
  const Checkpoint c = g.take_checkpoint(1);
  g.work(5);
  g.stop(2);
  g.lose_memory(2);
  g.nodes[0].late = g.nodes[1].late = false;
  g.restart(2, StartKind::kLost, &c);
  CHECK(g.core(2).role() == Role::kLearner);
  CHECK(g.core(2).last() == c.at.last);
  CHECK(g.core(2).committed() == c.at.last.index);
  g.settle_down();
  CHECK(g.core(2).role() == Role::kFollower);
  CHECK_FALSE(g.core(2).needs_checkpoint());
  g.check_delivered_behind(2, c.at);
  g.stop(1);
  g.work(4);  // its vote is needed, and it counts
  REQUIRE(g.core(0).transfer(ReplicaId{2}, {g.now_ns, 0}).ok());
  g.run_for(300 * kMs);
  REQUIRE(g.leader() == 2);
  g.work(4, 2);
  g.restart(1, StartKind::kSurvived, nullptr);  // its log reaches back further than the leader's
  g.settle_down();
  g.work(2, 2);
  CHECK(g.core(1).delivered() == g.core(2).delivered());
  CHECK(g.core(2).peer_state(ReplicaId{1}) == PeerState::kStreaming);
}

TEST_CASE("checkpoint: before it is promoted a learner neither counts nor grants",
          "[R=3][CORE-M6]") {
  Group g;
  g.work(10);
  const Checkpoint c = g.take_checkpoint(1);
  g.stop(2);
  g.lose_memory(2);
  g.stop(1);
  g.restart(2, StartKind::kLost, &c);
  g.run_for(100 * kMs);
  const Index before = g.core(0).committed();
  (void)g.propose(0);
  g.run_for(300 * kMs);
  CHECK(g.core(2).role() == Role::kLearner);
  CHECK(g.core(0).committed() == before);  // one voter of two is running
}

TEST_CASE("checkpoint: a checkpoint older than the leader's ring does not help", "[R=3][L4]") {
  Group g;
  g.work(4);
  const Checkpoint old = g.take_checkpoint(1);
  g.work(60);
  g.settle_down();
  g.stop(2);
  g.lose_memory(2);
  g.restart(2, StartKind::kLost, &old);
  g.run_for(500 * kMs);
  CHECK(g.core(2).needs_checkpoint());
  CHECK(g.core(0).peer_needs_checkpoint(ReplicaId{2}));
  CHECK(g.nodes[2].delivered.empty());
  const Checkpoint c = g.take_checkpoint(0);
  g.stop(2);
  g.restart(2, StartKind::kSurvived, &c);  // the memory of a learner
  g.settle_down();
  CHECK_FALSE(g.core(2).needs_checkpoint());
  CHECK(g.core(2).role() == Role::kFollower);
  g.check_delivered_behind(2, c.at);
}

TEST_CASE("checkpoint: a new member begins there, although the CONFIG it needs is in no ring",
          "[R=4][CORE-M3]") {
  Group g(Durability::kMemory, 4);
  g.stop(3);
  REQUIRE(g.change(0, MemberChange::Kind::kAdd, 3).ok());
  g.work(60);
  const Checkpoint c = g.take_checkpoint(1);
  REQUIRE(c.config.at.index > Index{0});
  REQUIRE(c.config.at.index < c.at.last.index);
  g.nodes[3].incarnation = 77;
  g.restart(3, StartKind::kNew, &c);
  CHECK(g.core(3).members().member(ReplicaId{3}));
  g.settle_down();
  CHECK(g.core(3).role() == Role::kLearner);
  g.check_delivered_behind(3, c.at);
  REQUIRE(g.change(0, MemberChange::Kind::kPromote, 3).ok());
  g.settle_down();
  CHECK(g.core(3).role() == Role::kFollower);
  CHECK(g.core(3).members() == g.core(0).members());
}

TEST_CASE("checkpoint: a leader of an older view than the facts name is not followed",
          "[R=3][CORE-B3][C5]") {
  Group g;
  g.work(3);
  g.nodes[0].cut = true;  // it still believes that it leads
  for (unsigned i : {1U, 2U}) g.step(i, PeerDown{ReplicaId{0}});
  g.run_for(300 * kMs);
  const unsigned led_by = g.core(1).role() == Role::kLeader ? 1 : 2;
  REQUIRE(g.core(led_by).role() == Role::kLeader);
  const unsigned other = 3 - led_by;
  for (int i = 0; i < 4; ++i) {
    REQUIRE(g.propose(led_by, 100).ok());
    g.flush(led_by);
  }
  const Checkpoint c = g.take_checkpoint(led_by);
  const View old = g.core(0).promised_view();
  REQUIRE(c.view > old);
  g.stop(other);
  g.lose_memory(other);
  g.nodes[led_by].cut = true;
  g.nodes[0].cut = false;
  g.restart(other, StartKind::kLost, &c);
  g.run_for(300 * kMs);
  CHECK(g.core(other).promised_view() >= c.view);
  CHECK(g.nodes[0].fatal.empty());
  g.nodes[led_by].cut = false;
  g.run_for(1000 * kMs);
  for (const auto& n : g.nodes) CHECK(n.fatal.empty());
  const int leads = g.leader();
  REQUIRE(leads >= 0);
  g.settle_down();
  g.check_delivered_behind(other, c.at, static_cast<unsigned>(leads));
}

TEST_CASE("checkpoint: in disk mode later entries are fetched from peers' stores",
          "[R=3, disk][CORE-B1]") {
  Group g(Durability::kDisk);
  g.work(4);
  const Checkpoint c = g.take_checkpoint(1);
  g.work(60);
  g.settle_down();
  g.stop(2);
  g.lose_memory(2);
  g.nodes[2].held.clear();
  g.restart(2, StartKind::kLost, &c);
  g.run_for(2000 * kMs);
  CHECK_FALSE(g.core(2).needs_checkpoint());
  CHECK(g.core(2).role() == Role::kFollower);
  g.check_delivered_behind(2, c.at);
  CHECK(g.nodes[2].held.begin()->first == value(c.at.last.index) + 1);
}

TEST_CASE("checkpoint: facts survive their bytes, other bytes are rejected", "[checkpoint]") {
  using consensus::decode_checkpoint;
  constexpr std::uint64_t kLogId = 99;
  const Members first = Members::first(3);
  Members members = first;
  members.set(ReplicaId{4}, MemberRole::kLearner, 12345);
  const View view = make_view(7, ReplicaId{2});
  const ConfigAt config{{make_view(2, ReplicaId{0}), Index{40}}, members};
  consensus::Checkpoint c;
  c.place = {{make_view(6, ReplicaId{1}), Index{100}}, 4096};
  c.facts = consensus::encode_facts(kLogId, view, config);
  const auto decoded = decode_checkpoint(c, kLogId, first);
  REQUIRE(decoded.ok());
  CHECK(decoded.value().at == Cursor{4096, {make_view(6, ReplicaId{1}), Index{100}}});
  CHECK(decoded.value().view == view);
  CHECK(decoded.value().config.at == config.at);
  CHECK(decoded.value().config.members == members);
  CHECK(decode_checkpoint(c, kLogId + 1, first).error().code == Code::kBadArgument);
  for (std::size_t i = 0; i < c.facts.size(); ++i) {
    consensus::Checkpoint bad = c;
    bad.facts[i] ^= std::byte{1};
    CHECK(decode_checkpoint(bad, kLogId, first).error().code == Code::kDamaged);
    bad.facts.resize(i);
    CHECK(decode_checkpoint(bad, kLogId, first).error().code == Code::kDamaged);
  }
  consensus::Checkpoint none;
  REQUIRE(decode_checkpoint(none, kLogId, first).ok());
  CHECK(decode_checkpoint(none, kLogId, first).value().config.members == first);
  none.place.pos = 8;
  CHECK(decode_checkpoint(none, kLogId, first).error().code == Code::kDamaged);
}
