// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica reports its true state, and reports it when it has changed.
// METHOD  The machine alone: the test is the server, the group and the clock.
// CHECKS  Readiness; when status.json is written and the others are informed; the known group.
#include "proxy/replica/status/self_report.h"

#include <catch2/catch.hpp>

using namespace crane;
using namespace crane::replica;

namespace {

constexpr std::int64_t kMs = 1'000'000;

struct World {
  SelfReport report{ReplicaId{0}};
  Glance glance;
  consensus::GroupStatus group;
  std::int64_t now = 1000 * kMs;

  World() {
    for (std::uint8_t i = 0; i < 3; ++i) {
      consensus::MemberStatus m{};
      m.id = ReplicaId{i};
      m.role = consensus::MemberRole::kVoter;
      m.connected = true;
      m.streaming = i == 1;
      group.members.push_back(m);
    }
    glance.server_pid = 7;
    glance.server_exit = -1;
  }
  void look(bool listens) {
    const std::vector<ListenQueue> queues(listens ? 1 : 0, ListenQueue{80, 0, 0, false});
    report.looked(glance, queues, false, "", now);
  }
};

}  // namespace

TEST_CASE_METHOD(World, "a server that has not listened yet starts, and is looked at again",
                 "[report]") {
  look(false);
  CHECK(report.readiness(glance, {}).starts);
  CHECK(report.not_serving() == "the server listens on no port");
  // Its listen() causes no event, so it is looked at again.
  (void)report.must_report(glance, now);
  (void)report.note_to_send({}, glance, Index{1}, {}, now);
  CHECK(report.due_ns() == now + ServingWatch::kLookEveryNs);
  look(true);
  CHECK(report.due_ns() == kNever);
  CHECK_FALSE(report.readiness(glance, {}).starts);
  CHECK(report.not_serving().empty());
}

TEST_CASE_METHOD(World, "a server that waits for what can never come serves no client",
                 "[report]") {
  report.looked(glance, std::vector{ListenQueue{80, 0, 0, false}}, false, "all its threads wait",
                now);
  CHECK(report.readiness(glance, {}).why_not == "all its threads wait");
  glance.server_exit = 3;
  look(true);
  CHECK(report.readiness(glance, {}).why_not == "the server has ended with status 3");
}

TEST_CASE_METHOD(World, "a follower's server that waits at its leader's is not late", "[report]") {
  Report facts;
  facts.waits_at_leader = true;
  facts.behind_ns = 900 * kMs;
  CHECK(report.readiness(glance, facts).held);
  CHECK_FALSE(report.readiness(glance, facts).late());
  glance.leads = true;
  CHECK_FALSE(report.readiness(glance, facts).held);
}

TEST_CASE_METHOD(World, "a change is written once, and a little later", "[report]") {
  CHECK_FALSE(report.must_write(glance, now));  // the server's pid is new
  now += 20 * kMs;
  CHECK(report.must_write(glance, now));
  CHECK_FALSE(report.must_write(glance, now + 1000 * kMs));
  ++glance.divergences;
  CHECK_FALSE(report.must_write(glance, now));
  CHECK(report.must_write(glance, now + 20 * kMs));
}

TEST_CASE_METHOD(World, "the others are informed of a change at once, and of one that lasts",
                 "[report]") {
  CHECK(report.must_report(glance, now));
  const auto note = report.note_to_send(report.readiness(glance, {}), glance, Index{5}, group, now);
  CHECK(note.to == std::vector{ReplicaId{1}, ReplicaId{2}});
  CHECK(note.note.applied == 5);
  for (const ReplicaId to : note.to) report.sent(to, true, now);
  glance.takes_clients = true;
  CHECK(report.must_report(glance, now));
  for (int i = 0; i < 20; ++i, now += 100 * kMs) {  // the repeats end
    if (!report.must_report(glance, now)) continue;
    const auto again =
        report.note_to_send(report.readiness(glance, {}), glance, Index{5}, group, now);
    for (const ReplicaId to : again.to) report.sent(to, true, now);
  }
  CHECK_FALSE(report.must_report(glance, now));
  glance.has_more_to_run = true;  // it may be late soon, without an event
  CHECK_FALSE(report.must_report(glance, now));
  CHECK(report.must_report(glance, now + 50 * kMs));
}

TEST_CASE_METHOD(World, "a leader reports to which peers it sends the log", "[report]") {
  glance.leads = true;
  const auto note = report.note_to_send(report.readiness(glance, {}), glance, Index{5}, group, now);
  CHECK((note.note.flags & PeerNote::kLeads) != 0);
  CHECK(note.note.receives_log[0] == 0b011);
}

TEST_CASE_METHOD(
    World, "the group consists of what its members have reported, and what is known about them",
    "[report]") {
  using Contact = control::ReplicaView::Contact;
  KnownMembers known;
  known.self = ReplicaId{0};
  known.leader = ReplicaId{1};
  known.members = group.members;
  known.own.runs = true;
  group.members[2].connected = false;
  std::map<std::uint8_t, PeerView> peers;
  peers[1].reported.emplace().takes_clients = true;
  peers[1].receives_log = false;
  peers[2].was_there = true;
  const control::GroupView seen = seen_by(known, peers);
  REQUIRE(seen.replicas.size() == 3);
  CHECK(seen.leader == 1);
  CHECK(seen.replicas[0].seen == Contact::kReported);
  CHECK(seen.replicas[0].readiness.runs);
  CHECK(seen.replicas[1].readiness.takes_clients);
  CHECK_FALSE(seen.replicas[1].receives_log);  // according to the leader
  CHECK(seen.replicas[2].seen == Contact::kGone);
  known.leads = true;  // then its own state counts
  CHECK(seen_by(known, peers).replicas[1].receives_log);
  CHECK_FALSE(seen_by({}, peers).knows_members);
}
