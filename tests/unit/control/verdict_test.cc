// SPDX-License-Identifier: Apache-2.0
// Whether the group serves its clients and how many replicas it may lose, for a table of snapshots.
#include "runtime/control/verdict.h"

#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/control/answers.h"

using namespace crane::control;
using Contact = ReplicaView::Contact;
using Member = ReplicaView::Member;

namespace {

// Replica 0 leads `count` voters, which could all serve at once.
GroupView whole(int count = 3) {
  GroupView group;
  group.leader = 0;
  for (int i = 0; i < count; ++i) {
    ReplicaView one;
    one.replica = i;
    one.seen = Contact::kReported;
    one.readiness.runs = true;
    one.readiness.takes_clients = i == 0;
    group.replicas.push_back(one);
  }
  return group;
}

void replays(ReplicaView& r, std::uint64_t done, std::uint64_t of, std::int64_t left_ms = -1) {
  r.readiness.recovers = true;
  r.readiness.progress = {done, of, 4000, left_ms};
}

void only_votes(ReplicaView& r) {
  r.readiness.runs = r.readiness.takes_clients = false;
  r.readiness.acceptor_only = true;
}

struct Row {
  const char* what;
  std::function<void(GroupView&)> change;
  Health health;
  bool serving;
  std::int64_t may_lose;
  const char* text;
};

void check(const Row& row, GroupView group = whole()) {
  row.change(group);
  const Verdict v = verdict_of(group);
  INFO(row.what << ": " << v.text);
  CHECK(name(v.health) == std::string(name(row.health)));
  CHECK(v.serving == row.serving);
  REQUIRE(v.may_lose);
  CHECK(*v.may_lose == row.may_lose);
  CHECK(v.text == row.text);
}

}  // namespace

// VERDICT-2
TEST_CASE("verdict: in a serving group only replicas that could lead at once count", "[verdict]") {
  const auto two_replay = [](GroupView& g) {
    replays(g.replicas[1], 0, 7'498);
    replays(g.replicas[2], 12'400, 24'272, 3'100);
  };
  const Row kRows[] = {
      {"all are there", [](GroupView&) {}, Health::kWell, true, 1,
       "serving, 3 of 3, fault tolerant"},
      {"two catch up", two_replay, Health::kDegraded, true, 0,
       "serving, 3 of 3, but not yet fault tolerant: replica 1 replays, 0 of 7,498 entries; "
       "replica "
       "2 replays, 12,400 of 24,272 entries, 3 s left"},
      {"one catches up", [](GroupView& g) { replays(g.replicas[2], 1, 2, 400); }, Health::kDegraded,
       true, 1,
       "serving, 3 of 3, fault tolerant; replica 2 replays, 1 of 2 entries, less than 1 s left"},
      {"one is restored",
       [](GroupView& g) {
         replays(g.replicas[2], 0, 7'498);
         g.replicas[2].readiness.runs = false;
       },
       Health::kDegraded, true, 1,
       "serving, 3 of 3, fault tolerant; replica 2 starts its server, which then replays"},
      {"two have no server",
       [](GroupView& g) {
         for (int i : {1, 2}) only_votes(g.replicas[i]);
       },
       Health::kDegraded, true, 0,
       "serving, 3 of 3, but not yet fault tolerant: replica 1 votes without a server: it waits "
       "for "
       "a checkpoint to begin at; replica 2 votes without a server: it waits for a checkpoint to "
       "begin at"},
      {"two are late",
       [](GroupView& g) {
         g.replicas[1].readiness.lag_ms = 201;
         g.replicas[2].readiness.lag_ms = 24'272;
       },
       Health::kDegraded, true, 0,
       "serving, 3 of 3, but not yet fault tolerant: replica 1 is 201 ms behind; replica 2 is "
       "24,272 ms behind"},
      {"one is late", [](GroupView& g) { g.replicas[1].readiness.lag_ms = 201; }, Health::kWell,
       true, 1, "serving, 3 of 3, fault tolerant"},
      {"two wait where the leader was",
       [](GroupView& g) {
         for (int i : {1, 2})
           g.replicas[i].readiness.lag_ms = 900, g.replicas[i].readiness.held = true;
       },
       Health::kWell, true, 1, "serving, 3 of 3, fault tolerant"},
  };
  for (const Row& row : kRows) check(row);
}

// VERDICT-2
TEST_CASE("verdict: a replica that is away or unknown does not count", "[verdict]") {
  const Row kRows[] = {
      {"one is gone", [](GroupView& g) { g.replicas[1].seen = Contact::kGone; }, Health::kDegraded,
       true, 0, "serving, 2 of 3: ONE MORE LOSS STOPS IT; replica 1 is gone"},
      {"one merely starts", [](GroupView& g) { g.replicas[1].seen = Contact::kStarts; },
       Health::kDegraded, true, 0, "serving, 2 of 3: ONE MORE LOSS STOPS IT; replica 1 starts"},
      {"one lost its memory",
       [](GroupView& g) {
         g.replicas[2].member = Member::kReturning;
         replays(g.replicas[2], 0, 7'498);
       },
       Health::kDegraded, true, 0,
       "serving, 2 of 3: ONE MORE LOSS STOPS IT; replica 2 replays, 0 of 7,498 entries"},
      {"one lacks what left the log",
       [](GroupView& g) { g.replicas[1].readiness.needs_checkpoint = true; }, Health::kDegraded,
       true, 0,
       "serving, 2 of 3: ONE MORE LOSS STOPS IT; replica 1 lacks entries that left the log"},
      {"one has no room", [](GroupView& g) { g.replicas[1].readiness.no_room = true; },
       Health::kDegraded, true, 0,
       "serving, 2 of 3: ONE MORE LOSS STOPS IT; replica 1 has no room"},
      {"the followers get no entries",
       [](GroupView& g) { g.replicas[1].receives_log = g.replicas[2].receives_log = false; },
       Health::kDegraded, true, 0,
       "serving, 3 of 3, but not yet fault tolerant: replica 1 does not get the log yet; replica 2 "
       "does not get the log yet"},
      {"nothing is known of two",
       [](GroupView& g) { g.replicas[1].seen = g.replicas[2].seen = Contact::kNotReported; },
       Health::kDegraded, true, 0,
       "serving, 3 of 3, but not yet fault tolerant: replica 1 has not reported its progress; "
       "replica "
       "2 has not reported its progress"},
      {"one does not answer", [](GroupView& g) { g.replicas[1].seen = Contact::kSilent; },
       Health::kDegraded, true, 0,
       "serving, 2 of 3: ONE MORE LOSS STOPS IT; replica 1 does not answer"},
      {"one is cut from the leader", [](GroupView& g) { g.replicas[1].connected = false; },
       Health::kDegraded, true, 0,
       "serving, 2 of 3: ONE MORE LOSS STOPS IT; replica 1 is not connected to the leader"},
      {"the server of one has ended",
       [](GroupView& g) {
         for (int i : {1, 2}) g.replicas[i].readiness.runs = false;
       },
       Health::kDegraded, true, 0,
       "serving, 3 of 3, but not yet fault tolerant: replica 1 has no server: it ended; replica 2 "
       "has no server: it ended"},
      {"the replicas differ",
       [](GroupView& g) { g.alarm = "the replicas differ, none has a majority"; },
       Health::kDegraded, true, 1, "serving, 3 of 3, BUT THE REPLICAS DIFFER, fault tolerant"},
      {"no crane-run", [](GroupView& g) { g.unsupervised = true; }, Health::kDegraded, true, 1,
       "serving, 3 of 3, fault tolerant"},
  };
  for (const Row& row : kRows) check(row);
}

TEST_CASE("verdict: groups of other sizes", "[verdict]") {
  const Row kWhole{"all are there",
                   [](GroupView&) {},
                   Health::kWell,
                   true,
                   2,
                   "serving, 5 of 5, fault tolerant: 2 may be lost"};
  check(kWhole, whole(5));
  check({"one is gone of five", [](GroupView& g) { g.replicas[4].seen = Contact::kGone; },
         Health::kDegraded, true, 1, "serving, 4 of 5, fault tolerant; replica 4 is gone"},
        whole(5));
  check({"one alone", [](GroupView&) {}, Health::kWell, true, 0,
         "serving, 1 of 1, NOT FAULT TOLERANT: its loss stops it"},
        whole(1));
  check({"two members", [](GroupView&) {}, Health::kDegraded, true, 0,
         "serving, 2 of 2: ONE MORE LOSS STOPS IT"},
        whole(2));
  check({"a learner that has told nothing",
         [](GroupView& g) {
           g.replicas[3].member = Member::kOther;
           g.replicas[3].seen = Contact::kNotReported;
         },
         Health::kWell, true, 1, "serving, 3 of 3, fault tolerant"},
        whole(4));
}

// VERDICT-1
TEST_CASE("verdict: a group serves if its leader reports that it takes clients", "[verdict]") {
  const auto leader_not_yet = [](GroupView& g) { g.replicas[0].readiness.takes_clients = false; };
  const Row kRows[] = {
      {"its server does not know that it leads", leader_not_yet, Health::kNotServing, false, 0,
       "not serving: replica 0 leads, but its server does not know that yet"},
      {"it replays",
       [&](GroupView& g) {
         leader_not_yet(g);
         replays(g.replicas[0], 40'000, 100'000, 15'000);
       },
       Health::kNotServing, false, 0,
       "not serving: replaying, 40,000 of 100,000 entries, 15 s left"},
      {"its server starts",
       [&](GroupView& g) {
         leader_not_yet(g);
         g.replicas[0].readiness.runs = false;
         g.replicas[0].readiness.starts = true;
         g.replicas[0].readiness.why_not = "the server does not run";
       },
       Health::kStarting, false, 0, "starting: the server of replica 0 has not begun"},
      {"it does not listen yet",
       [](GroupView& g) {
         g.replicas[0].readiness.starts = true;
         g.replicas[0].readiness.why_not = "the server listens on no port";
       },
       Health::kStarting, false, 0, "starting: the server of replica 0 listens on no port yet"},
      {"it listens no more",
       [](GroupView& g) { g.replicas[0].readiness.why_not = "the server listens on no port"; },
       Health::kNotServing, false, 0, "NOT SERVING: its server makes no progress"},
      {"its clients wait for followers", [](GroupView& g) { g.replicas[0].readiness.paced = true; },
       Health::kNotServing, false, 0,
       "not serving: clients wait for a majority's servers to catch up, or for a checkpoint"},
      {"its inputs wait for room", [](GroupView& g) { g.replicas[0].readiness.no_room = true; },
       Health::kNotServing, false, 0,
       "NOT SERVING: inputs wait: replica 0, which leads, has no room for them"},
      {"they do, and its server for them",
       [](GroupView& g) {
         g.replicas[0].readiness.no_room = true;
         g.replicas[0].readiness.why_not = "the server answers no client";
       },
       Health::kNotServing, false, 0,
       "NOT SERVING: inputs wait: replica 0, which leads, has no room for them"},
      {"it has not told", [](GroupView& g) { g.replicas[0].seen = Contact::kNotReported; },
       Health::kNotServing, false, 0, "replica 0 leads, but has not reported whether it serves"},
      {"it does not answer", [](GroupView& g) { g.replicas[0].seen = Contact::kSilent; },
       Health::kNoLeader, false, 0, "NOT SERVING: replica 0, which leads, does not answer"},
      {"it is gone", [](GroupView& g) { g.replicas[0].seen = Contact::kGone; }, Health::kNoLeader,
       false, 0, "NOT SERVING: no leader"},
      {"its server stands", [](GroupView& g) { g.replicas[0].readiness.lag_ms = 1'301; },
       Health::kNotServing, false, 0,
       "NOT SERVING: the server of replica 0, which leads, is 1,301 ms behind"},
      {"all servers compute",
       [](GroupView& g) {
         for (ReplicaView& r : g.replicas) r.readiness.lag_ms = 1'301;
       },
       Health::kDegraded, true, 0,
       "serving, 3 of 3, but not yet fault tolerant: replica 0 is 1,301 ms behind; replica 1 is "
       "1,301 ms behind; replica 2 is 1,301 ms behind"},
      {"it has no quorum", [](GroupView& g) { g.no_quorum = "no quorum: 1 of 3 replicas answer"; },
       Health::kNoLeader, false, 0, "NOT SERVING: no quorum"},
  };
  for (const Row& row : kRows) check(row);
}

TEST_CASE("verdict: a leader without a server serves nothing", "[verdict][VOTES-1]") {
  const Row kRows[] = {
      {"it has no server, and another has",
       [](GroupView& g) {
         only_votes(g.replicas[0]);
         only_votes(g.replicas[1]);
       },
       Health::kNotServing, false, 0,
       "not serving: replica 0 leads without a server and hands over"},
      {"no replica that is there has a server",
       [](GroupView& g) {
         only_votes(g.replicas[0]);
         only_votes(g.replicas[1]);
         g.replicas[2].seen = Contact::kGone;
       },
       Health::kNotServing, false, 0,
       "NOT SERVING: no available replica has a server; waits for replica 2"},
      {"nor has one, as a checkpoint cannot be used",
       [](GroupView& g) {
         for (ReplicaView& r : g.replicas) only_votes(r);
         g.replicas[1].readiness.why_not = "the checkpoint at entry 90 cannot be used";
       },
       Health::kNotServing, false, 0,
       "NOT SERVING: no replica has a server; replica 1: the checkpoint at entry 90 cannot be "
       "used"},
      {"no replica has a server",
       [](GroupView& g) {
         for (ReplicaView& r : g.replicas) only_votes(r);
       },
       Health::kNotServing, false, 0,
       "NOT SERVING: the servers' state is lost, because no checkpoint reaches the log; stop the "
       "group and start it with --force-new-group to continue without"},
  };
  for (const Row& row : kRows) check(row);
}

TEST_CASE("verdict: a group without a leader is starting, replays, or has no leader", "[verdict]") {
  const auto without_leader = [](GroupView& g) {
    g.leader = -1;
    g.replicas[0].readiness.takes_clients = false;
  };
  const auto all = [&](Contact seen) {
    return [=](GroupView& g) {
      without_leader(g);
      for (ReplicaView& r : g.replicas) r.seen = seen;
    };
  };
  const Row kRows[] = {
      {"it is gone", without_leader, Health::kNoLeader, false, 0, "NOT SERVING: no leader"},
      {"the nodes merely start", all(Contact::kStarts), Health::kStarting, false, 0,
       "starting: waits for replicas 0, 1, 2"},
      {"all are gone", all(Contact::kGone), Health::kNoLeader, false, 0, "NOT SERVING: no leader"},
      {"two replay after all were lost",
       [&](GroupView& g) {
         without_leader(g);
         g.replicas[0].seen = Contact::kStarts;
         replays(g.replicas[1], 5, 100'000);
         replays(g.replicas[2], 40'000, 100'000, 150'000);
         g.no_quorum = "no leader: 2 of 3 replicas answer; clients wait";
       },
       Health::kNotServing, false, 0,
       "not serving: replaying, 40,000 of 100,000 entries, 3 min left"},
      {"one starts, and the others do not come",
       [&](GroupView& g) {
         without_leader(g);
         g.replicas[0].readiness.starts = true;
         for (int i : {1, 2}) g.replicas[i].seen = Contact::kNotYet;
         g.no_quorum = "no quorum: 1 of 3 replicas answer; clients wait";
       },
       Health::kNoLeader, false, 0, "NOT SERVING: no quorum"},
  };
  for (const Row& row : kRows) check(row);
  GroupView drained = whole();
  for (ReplicaView& r : drained.replicas) r.seen = Contact::kDrained;
  CHECK(verdict_of(drained).health == Health::kDrained);
  CHECK_FALSE(verdict_of(drained).may_lose);
}

TEST_CASE("verdict: unknown values are reported as unknown and count as nothing", "[verdict]") {
  GroupView group = whole(1);
  group.knows_members = false;
  CHECK(verdict_of(group).serving);
  CHECK(verdict_of(group).text == "serving; the number of tolerable losses is unknown");
  CHECK_FALSE(verdict_of(group).may_lose);
}

TEST_CASE("verdict: notes contain each replica's problem, and that replicas differ", "[verdict]") {
  GroupView group = whole();
  group.replicas[2].seen = Contact::kGone;
  group.alarm = "none has a majority";
  const Verdict v = verdict_of(group);
  CHECK(v.serving);
  CHECK_FALSE(v.sound);
  CHECK(v.notes ==
        std::vector<std::string>{"replica 2 is gone", "the replicas differ: none has a majority"});
}

TEST_CASE("verdict: a replica's report survives JSON", "[verdict]") {
  Readiness readiness;
  readiness.runs = readiness.recovers = readiness.no_room = readiness.acceptor_only =
      readiness.paced = true;
  readiness.lag_ms = 300;
  readiness.progress = {7, 70, 7, 9'000};
  readiness.why_not = "the server listens on no port";
  for (const bool held : {false, true}) {
    readiness.held = held;
    const auto back = readiness_in({{"readiness", to_json(readiness)}});
    REQUIRE(back);
    CHECK(back->late() == !held);
    CHECK(to_json(*back) == to_json(readiness));
  }
  CHECK_FALSE(readiness_in({{"readiness", nullptr}}));
  CHECK_FALSE(readiness_in({{"readiness", 7}}));
}

TEST_CASE("verdict: a note says why no checkpoints are taken", "[verdict]") {
  GroupView group = whole();
  CHECK(verdict_of(group).notes.empty());
  group.no_checkpoints = "no CRIU is installed";
  const Verdict v = verdict_of(group);
  CHECK(v.health == Health::kWell);
  CHECK(v.notes == std::vector<std::string>{"no checkpoints are taken: no CRIU is installed"});
}
