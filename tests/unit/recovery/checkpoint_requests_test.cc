// SPDX-License-Identifier: Apache-2.0
// GOAL    A leader requests a checkpoint from the right replica, at the right time.
// METHOD  CheckpointRequests alone: the test is the members, the log and the clock.
// CHECKS  ASK-1, ASK-2; operators' answers; replicas that lack entries; a machine without CRIU.
#include "proxy/replica/recovery/checkpoint_requests.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace crane;
using namespace crane::replica;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A leader, replica 0 of three: its requests get the next place in the log at once.
struct World {
  CheckpointRequests::Rules rules;
  std::vector<MemberView> members;
  std::vector<unsigned> asked;        // replicas, in log order
  std::vector<std::string> refusals;  // of wishes, with their receivers
  bool full = false;
  unsigned late = 9;          // none
  unsigned with_servers = 3;  // replicas 0, 1, ..; the others only vote
  std::optional<CheckpointRequests> requests;
  Facts facts;

  World() {
    facts.started = facts.leads = true;
    for (std::uint8_t i = 0; i < 3; ++i) {
      MemberView m;
      m.id = ReplicaId{i};
      m.role = consensus::MemberRole::kVoter;
      m.connected = m.streaming = true;
      members.push_back(m);
    }
  }
  void every(std::int64_t seconds) {
    rules.wanted = true;
    rules.limits.every_ns = seconds * kSecond;
  }
  CheckpointRequests& machine() {
    if (!requests) requests.emplace(rules);
    return *requests;
  }
  const Facts& look(std::int64_t now_ns) {
    for (MemberView& m : members) {
      m.lag_ns = value(m.id) == late ? kSecond : 0;
      m.report.emplace();
      m.report->acceptor_only = value(m.id) >= with_servers;
      m.report->waits_behind = Index{50};
    }
    facts.now_ns = now_ns;
    facts.members = members;
    return facts;
  }
  // The answer to an operator: the kind of refusal; "": it was requested.
  std::string ask(std::optional<unsigned> of = {}) {
    ActionList out;
    std::optional<ReplicaId> named;
    if (of) named = ReplicaId{static_cast<std::uint8_t>(*of)};
    machine().ask(named, look(0), out);
    std::optional<Answer> answer = carry_out(out);
    REQUIRE(answer);
    return answer->refused == nullptr ? "" : answer->refused;
  }
  void step(std::int64_t now_ns, std::uint64_t log_end, std::uint64_t inputs) {
    facts.log_end = log_end;
    facts.inputs = inputs;
    ActionList out;
    machine().step(false, look(now_ns), out);
    CHECK_FALSE(carry_out(out));
  }
  void suggest(std::int64_t now_ns) {
    machine().suggest(look(now_ns));
    step(now_ns, 0, facts.inputs);
  }
  void help(unsigned peer, Index behind, std::int64_t now_ns) {
    ActionList out;
    machine().help(ReplicaId{static_cast<std::uint8_t>(peer)}, behind, look(now_ns), out);
    CHECK_FALSE(carry_out(out));
  }
  void wish(unsigned peer, std::uint64_t behind) {
    ActionList out;
    machine().wish(ReplicaId{static_cast<std::uint8_t>(peer)}, Index{behind}, look(0), out);
    CHECK_FALSE(carry_out(out));
  }

 private:
  std::optional<Answer> carry_out(ActionList& out) {
    std::optional<Answer> answer;
    while (!out.empty()) {
      for (const Action& action : std::exchange(out, {})) {
        if (const auto* propose = std::get_if<ProposeCheckpoint>(&action)) {
          if (!full) asked.push_back(value(propose->taker));
          machine().proposed(
              full ? Proposed{Index{}, "the log is full"} : Proposed{Index{asked.size()}, ""},
              facts, out);
        } else if (const auto* one = std::get_if<Answer>(&action)) {
          answer = *one;
        } else if (const auto* sent = std::get_if<SendNote>(&action)) {
          const auto& no = std::get<WishRefusal>(sent->message);
          refusals.push_back(fmt::format("{} behind {}: {}", value(sent->to), no.behind, no.why));
        }
      }
    }
    return answer;
  }
};

using Replicas = std::vector<unsigned>;

}  // namespace

TEST_CASE_METHOD(World, "replicas take turns, the leader takes none", "[requests][ASK-1][ASK-2]") {
  for (int i = 0; i < 4; ++i) CHECK(ask().empty());
  CHECK(asked == Replicas{1, 2, 1, 2});
}

TEST_CASE_METHOD(World, "a follower takes the checkpoint that it requested", "[requests][ASK-1]") {
  facts.view = View{257};
  wish(2, 0);
  CHECK(asked == Replicas{2});  // at entry 1
  wish(2, 0);                   // a repeated wish
  CHECK(asked == Replicas{2});
  wish(2, 1);
  CHECK(asked == Replicas{2, 2});
  facts.view = View{768};  // that request may not be in the log of this view
  wish(2, 1);
  CHECK(asked == Replicas{2, 2, 2});
  wish(0, 7);  // the leader's server would be paused
  full = true;
  wish(2, 7);
  CHECK(asked == Replicas{2, 2, 2});
  CHECK(refusals == std::vector<std::string>{"2 behind 7: the log is full"});
}

TEST_CASE_METHOD(World, "a wish that comes too early is not answered, and comes again",
                 "[requests][ASK-1][WISH-1]") {
  SECTION("before START") {
    facts.started = false;
    wish(2, 7);
  }
  SECTION("before the replica follows") {
    members[2].streaming = false;
    wish(2, 7);
  }
  CHECK(asked.empty());
  CHECK(refusals.empty());
  facts.started = true;
  members[2].streaming = true;
  wish(2, 7);
  CHECK(asked == Replicas{2});
}

TEST_CASE_METHOD(World, "a replica whose server no other one waits for takes its own",
                 "[requests][ASK-1]") {
  SECTION("the only voter") { members.resize(1); }
  SECTION("with learners") { members[1].role = members[2].role = consensus::MemberRole::kLearner; }
  CHECK(machine().alone(look(0)));
  (void)ask();
  CHECK(asked == Replicas{0});
}

TEST_CASE_METHOD(World, "a replica whose server is far behind takes none while another's is not",
                 "[requests][ASK-2]") {
  late = 1;
  for (int i = 0; i < 3; ++i) CHECK(ask().empty());
  CHECK(ask(1).empty());
  members[2].connected = false;
  CHECK(ask().empty());
  CHECK(asked == Replicas{2, 2, 2, 1, 1});
}

TEST_CASE_METHOD(World, "an operator learns why there is none", "[requests]") {
  facts.started = false;
  CHECK(ask() == "not_leader");
  facts.started = true;
  CHECK(ask(0) == "busy");
  members[2].streaming = false;
  CHECK(ask(2) == "busy");
  CHECK(ask(1).empty());
  members[1].connected = false;
  CHECK(ask() == "busy");
  members[1].connected = true;
  full = true;
  CHECK(ask() == "busy");
  CHECK(asked == Replicas{1});
}

TEST_CASE_METHOD(World, "a replica without a server takes none, and gets one from another",
                 "[requests][ASK-1][VOTES-1]") {
  with_servers = 2;
  step(kSecond, 0, 0);
  CHECK(asked == Replicas{1});
  step(7 * kSecond, 0, 0);  // it is in progress
  CHECK(asked == Replicas{1});
  machine().on_report({.state = CheckpointNote::kGivenUp, .index = 1}, 8 * kSecond);
  step(8 * kSecond, 0, 0);
  CHECK(asked == Replicas{1, 1});
  machine().on_report({.state = CheckpointNote::kTaken, .index = 60, .end = 1}, 9 * kSecond);
  step(20 * kSecond, 0, 0);  // the replica begins at it
  CHECK(asked == Replicas{1, 1});
  step(69 * kSecond, 0, 0);  // it did not
  CHECK(asked == Replicas{1, 1, 1});
  machine().on_report({.state = CheckpointNote::kRefused, .index = 3}, 70 * kSecond);
  step(75 * kSecond, 0, 0);  // CRIU will refuse again
  CHECK(asked == Replicas{1, 1, 1});
}

TEST_CASE_METHOD(World, "the leader's own server is paused if no other replica has one",
                 "[requests][ASK-1][VOTES-1]") {
  SECTION("they only vote") { with_servers = 1; }
  SECTION("one only votes, and one lacks entries which left the log") {
    with_servers = 2;
    members[1].streaming = false;
    members[1].needs_checkpoint = true;
  }
  SECTION("one only votes, and one is not connected") {
    with_servers = 2;
    members[1].connected = members[1].streaming = false;
  }
  CHECK(machine().alone(look(0)));
  step(kSecond, 0, 0);
  CHECK(asked == Replicas{0});
}

TEST_CASE_METHOD(World, "no checkpoint is requested if none can be taken", "[requests]") {
  rules.why_not_wanted = "the server runs without a container";
  with_servers = 2;
  step(kSecond, 0, 0);
  CHECK(asked.empty());
}

TEST_CASE_METHOD(World, "a replica that lacks entries gets one, once per five seconds",
                 "[requests]") {
  members[2].needs_checkpoint = true;
  step(kSecond, 0, 0);
  step(2 * kSecond, 0, 0);
  CHECK(asked == Replicas{1});
  step(7 * kSecond, 0, 0);
  CHECK(asked == Replicas{1, 2});
  help(2, Index{9}, 8 * kSecond);
  help(2, Index{9}, 9 * kSecond);
  CHECK(asked == Replicas{1, 2, 1});
}

TEST_CASE_METHOD(World, "a replica that runs in valgrind gets none", "[requests]") {
  members[2].role = consensus::MemberRole::kAnalysis;
  members[2].needs_checkpoint = true;
  step(kSecond, 0, 0);
  CHECK(asked.empty());
}

TEST_CASE_METHOD(World, "the schedule requests checkpoints where they can be taken", "[requests]") {
  every(10);
  SECTION("on this machine") {
    for (int s = 1; s <= 12; ++s) step(s * kSecond, 0, static_cast<std::uint64_t>(s));
    CHECK(asked == Replicas{1});
    suggest(12 * kSecond);  // the one in progress will do
    CHECK(asked == Replicas{1});
    CheckpointNote note;
    note.state = CheckpointNote::kTaken;
    machine().on_report(note, 12 * kSecond);
    suggest(12 * kSecond);
    CHECK(asked == Replicas{1, 2});
  }
  SECTION("not if CRIU is missing") {
    rules.why_not_wanted = "no CRIU";
    for (int s = 1; s <= 12; ++s) step(s * kSecond, 0, static_cast<std::uint64_t>(s));
    suggest(12 * kSecond);
    CHECK(asked.empty());
  }
}

TEST_CASE_METHOD(World, "crane-run's suggestion waits until a follower can take a checkpoint",
                 "[requests]") {
  rules.wanted = true;
  for (MemberView& m : members) m.streaming = m.connected = false;
  members[0].connected = members[1].connected = true;  // so soon after the election
  suggest(kSecond);
  CHECK(asked.empty());
  members[1].streaming = true;
  step(kSecond, 0, 0);
  step(kSecond, 0, 0);
  CHECK(asked == Replicas{1});
}

TEST_CASE_METHOD(World, "a checkpoint that is given up is soon requested from another replica",
                 "[requests][ASK-2][SCHEDULE-1]") {
  every(10);
  for (int s = 1; s <= 11; ++s) step(s * kSecond, 0, 1);
  REQUIRE(asked == Replicas{1});
  CheckpointNote note;
  note.state = CheckpointNote::kGivenUp;
  SECTION("it reports that") {
    note.index = 1;
    machine().on_report(note, 11 * kSecond);
  }
  SECTION("it is not connected") {
    members[1].connected = false;
    step(11 * kSecond + kSecond / 10, 0, 1);
  }
  SECTION("a late report is about an earlier one, and there is none about this one") {
    note.index = 0;
    machine().on_report(note, 11 * kSecond);
    step(13 * kSecond, 0, 1);
    CHECK(asked == Replicas{1});
    step(11 * kSecond + CheckpointSchedule::kAnswerNs, 0, 1);
    CHECK(asked == Replicas{1, 2});
    return;
  }
  step(11 * kSecond + kSecond / 2, 0, 1);
  CHECK(asked == Replicas{1});
  step(13 * kSecond, 0, 1);
  CHECK(asked == Replicas{1, 2});
}

TEST_CASE_METHOD(World, "if no other replica follows, requests are repeated until one does",
                 "[requests][SCHEDULE-1]") {
  every(100);
  members[1].streaming = members[2].streaming = false;
  for (int s = 1; s <= 110; ++s) step(s * kSecond, 0, 1);
  CHECK(asked.empty());
  members[2].streaming = true;
  for (int s = 111; s <= 111 + 30; ++s) step(s * kSecond, 0, 1);
  REQUIRE_FALSE(asked.empty());
  CHECK(asked.front() == 2);
}

TEST_CASE_METHOD(World, "half of the ring counts from the newest checkpoint, of any leader",
                 "[requests][SCHEDULE-2]") {
  every(1000);
  rules.limits.ring_bytes = 1 << 20;
  CheckpointNote note;
  note.state = CheckpointNote::kTaken;
  note.index = 7;
  note.end = 300'000;
  machine().on_report(note, 1);
  step(kSecond, 800'000, 1);
  CHECK(asked.empty());
  CHECK(machine().is_urgent(300'000 + (1 << 19)));
  step(2 * kSecond, 300'000 + (1 << 19), 2);
  CHECK(asked == Replicas{1});
}

TEST_CASE_METHOD(World, "a group of one is not paused because a return would take long",
                 "[requests][ASK-1]") {
  every(1000);
  rules.limits.log_bytes = 64 << 20;
  const bool others = GENERATE(true, false);  // crane-node gives a group of one no such limit
  if (others) rules.limits.replay_ns = CheckpointSchedule::kReplayNs;
  if (!others) members.resize(1);
  step(kSecond, 0, 0);
  machine().ran(100, 0);
  machine().ran(200, CheckpointSchedule::kReplayNs);
  step(10 * kSecond, 200, 1);
  CHECK(asked.empty() == !others);
}
