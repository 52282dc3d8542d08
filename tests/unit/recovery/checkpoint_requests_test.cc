// SPDX-License-Identifier: Apache-2.0
// GOAL    A leader asks the right replica for a checkpoint, at the right time.
// METHOD  CheckpointRequests alone: the test is the members, the log and the clock.
// CHECKS  ASK-1, ASK-2; operators' answers; replicas that lack entries; a machine without CRIU.
#include "proxy/host/recovery/checkpoint_requests.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dmt/sequence/entry.h"
#include "proxy/clients/encode.h"

using namespace crane;
using namespace crane::node;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
const nlohmann::json kAny = nlohmann::json::object();

struct World {
  Config config;
  std::vector<consensus::MemberStatus> members;
  std::vector<unsigned> asked;  // replicas, in the order of the log
  bool full = false;
  unsigned late = 9;          // none
  unsigned with_servers = 3;  // replicas 0, 1, ..; the others only vote
  std::string wanted_not;

  World() {
    config.replicas = 3;
    for (std::uint8_t i = 0; i < 3; ++i) {
      consensus::MemberStatus m{};
      m.id = ReplicaId{i};
      m.role = consensus::MemberRole::kVoter;
      m.connected = m.streaming = true;
      members.push_back(m);
    }
  }
  CheckpointRequests make() {
    CheckpointRequestActions actions;
    actions.members = [this] { return members; };
    actions.lag_ns = [this](ReplicaId who) { return value(who) == late ? kSecond : 0; };
    actions.waits_behind = [this](ReplicaId who) {
      return value(who) < with_servers ? std::nullopt : std::optional(Index{50});
    };
    actions.propose = [this](std::span<const std::byte> bytes) -> Result<Index> {
      if (full) return Error{Code::kBusy, 0, "the log is full"};
      CheckpointBody body;
      REQUIRE(proxy::read_body(bytes, body));
      asked.push_back(body.replica);
      return Index{asked.size()};
    };
    actions.restart = [] { return std::string(R"({"ok": true, "message": "restarted"})"); };
    return CheckpointRequests(config, wanted_not, std::move(actions));
  }
  static std::string error_of(const std::string& answer) {
    return nlohmann::json::parse(answer).value("error", "");
  }
};

using Replicas = std::vector<unsigned>;

}  // namespace

TEST_CASE_METHOD(World, "replicas take turns, the leader takes none", "[requests][ASK-1][ASK-2]") {
  auto requests = make();
  for (int i = 0; i < 4; ++i) CHECK(error_of(requests.ask(kAny, true)).empty());
  CHECK(asked == Replicas{1, 2, 1, 2});
}

TEST_CASE_METHOD(World, "a replica that no other waits for takes its own", "[requests][ASK-1]") {
  SECTION("the only voter") { members.resize(1); }
  SECTION("with learners") { members[1].role = members[2].role = consensus::MemberRole::kLearner; }
  auto requests = make();
  CHECK(requests.alone());
  (void)requests.ask(kAny, true);
  CHECK(asked == Replicas{0});
}

TEST_CASE_METHOD(World, "one whose server is far behind takes none while another's is not",
                 "[requests][ASK-2]") {
  auto requests = make();
  late = 1;
  for (int i = 0; i < 3; ++i) CHECK(error_of(requests.ask(kAny, true)).empty());
  CHECK(error_of(requests.ask({{"replica", 1}}, true)).empty());
  members[2].connected = false;
  CHECK(error_of(requests.ask(kAny, true)).empty());
  CHECK(asked == Replicas{2, 2, 2, 1, 1});
}

TEST_CASE_METHOD(World, "an operator hears why there is none", "[requests]") {
  auto requests = make();
  CHECK(error_of(requests.ask(kAny, false)) == "not_leader");
  CHECK(error_of(requests.ask({{"replica", 0}}, true)) == "busy");
  members[2].streaming = false;
  CHECK(error_of(requests.ask({{"replica", 2}}, true)) == "busy");
  CHECK(error_of(requests.ask({{"replica", 1}}, true)).empty());
  members[1].connected = false;
  CHECK(error_of(requests.ask(kAny, true)) == "busy");
  members[1].connected = true;
  full = true;
  CHECK(error_of(requests.ask(kAny, true)) == "busy");
  CHECK(asked == Replicas{1});
  CHECK(requests.ask({{"tier", "restart"}}, true).find("restarted") != std::string::npos);
}

TEST_CASE_METHOD(World, "a replica without a server takes none, and gets one of another's",
                 "[requests][ASK-1][VOTES-1]") {
  auto requests = make();
  with_servers = 2;
  requests.step(kSecond, 0, 0);
  CHECK(asked == Replicas{1});
  requests.step(7 * kSecond, 0, 0);  // it is under way
  CHECK(asked == Replicas{1});
  requests.heard({.came = CheckpointNote::kGivenUp, .index = 1}, 8 * kSecond);
  requests.step(8 * kSecond, 0, 0);
  CHECK(asked == Replicas{1, 1});
  requests.heard({.came = CheckpointNote::kTaken, .index = 60, .end = 1}, 9 * kSecond);
  requests.step(20 * kSecond, 0, 0);  // it begins there
  CHECK(asked == Replicas{1, 1});
  requests.step(69 * kSecond, 0, 0);  // it did not
  CHECK(asked == Replicas{1, 1, 1});
  requests.heard({.came = CheckpointNote::kRefused, .index = 3}, 70 * kSecond);
  requests.step(75 * kSecond, 0, 0);  // CRIU will say so again
  CHECK(asked == Replicas{1, 1, 1});
}

TEST_CASE_METHOD(World, "the leader's own is paused where no other has a server",
                 "[requests][ASK-1][VOTES-1]") {
  auto requests = make();
  SECTION("they only vote") { with_servers = 1; }
  SECTION("one only votes, and one is away") {
    with_servers = 2;
    members[1].connected = members[1].streaming = false;
  }
  CHECK(requests.alone());
  requests.step(kSecond, 0, 0);
  CHECK(asked == Replicas{0});
}

TEST_CASE_METHOD(World, "no checkpoint is asked for where none can be taken", "[requests]") {
  wanted_not = "the server runs without a container";
  auto requests = make();
  with_servers = 2;
  requests.step(kSecond, 0, 0);
  CHECK(asked.empty());
}

TEST_CASE_METHOD(World, "a replica that lacks entries gets one, once per five seconds",
                 "[requests]") {
  auto requests = make();
  members[2].needs_checkpoint = true;
  requests.step(kSecond, 0, 0);
  requests.step(2 * kSecond, 0, 0);
  CHECK(asked == Replicas{1});
  requests.step(7 * kSecond, 0, 0);
  CHECK(asked == Replicas{1, 2});
  requests.help(ReplicaId{2}, Index{9}, 8 * kSecond);
  requests.help(ReplicaId{2}, Index{9}, 9 * kSecond);
  CHECK(asked == Replicas{1, 2, 1});
}

TEST_CASE_METHOD(World, "one that runs in valgrind gets none", "[requests]") {
  auto requests = make();
  members[2].role = consensus::MemberRole::kAnalysis;
  members[2].needs_checkpoint = true;
  requests.step(kSecond, 0, 0);
  CHECK(asked.empty());
}

TEST_CASE_METHOD(World, "the schedule asks where checkpoints are taken", "[requests]") {
  config.checkpoint_every_s = 10;
  SECTION("here") {
    auto requests = make();
    for (int s = 1; s <= 12; ++s) requests.step(s * kSecond, 0, static_cast<std::uint64_t>(s));
    CHECK(asked == Replicas{1});
    requests.ask_if_wanted(true);  // the one under way will do
    CHECK(asked == Replicas{1});
    CheckpointNote note;
    note.came = CheckpointNote::kTaken;
    requests.heard(note, 12 * kSecond);
    requests.ask_if_wanted(true);
    CHECK(asked == Replicas{1, 2});
  }
  SECTION("not where CRIU is missing") {
    wanted_not = "no CRIU";
    auto requests = make();
    for (int s = 1; s <= 12; ++s) requests.step(s * kSecond, 0, static_cast<std::uint64_t>(s));
    requests.ask_if_wanted(true);
    CHECK(asked.empty());
  }
}

TEST_CASE_METHOD(World, "one that is given up is asked of another replica soon",
                 "[requests][ASK-2][SCHEDULE-1]") {
  config.checkpoint_every_s = 10;
  auto requests = make();
  for (int s = 1; s <= 11; ++s) requests.step(s * kSecond, 0, 1);
  REQUIRE(asked == Replicas{1});
  CheckpointNote note;
  note.came = CheckpointNote::kGivenUp;
  SECTION("it says so") {
    note.index = 1;
    requests.heard(note, 11 * kSecond);
  }
  SECTION("it is gone") {
    members[1].connected = false;
    requests.step(11 * kSecond + kSecond / 10, 0, 1);
  }
  SECTION("of one before that is said late, and of this one nothing") {
    note.index = 0;
    requests.heard(note, 11 * kSecond);
    requests.step(13 * kSecond, 0, 1);
    CHECK(asked == Replicas{1});
    requests.step(11 * kSecond + replica::CheckpointSchedule::kAnswerNs, 0, 1);
    CHECK(asked == Replicas{1, 2});
    return;
  }
  requests.step(11 * kSecond + kSecond / 2, 0, 1);
  CHECK(asked == Replicas{1});
  requests.step(13 * kSecond, 0, 1);
  CHECK(asked == Replicas{1, 2});
}

TEST_CASE_METHOD(World, "where no other replica follows it is tried until one does",
                 "[requests][SCHEDULE-1]") {
  config.checkpoint_every_s = 100;
  auto requests = make();
  members[1].streaming = members[2].streaming = false;
  for (int s = 1; s <= 110; ++s) requests.step(s * kSecond, 0, 1);
  CHECK(asked.empty());
  members[2].streaming = true;
  for (int s = 111; s <= 111 + 30; ++s) requests.step(s * kSecond, 0, 1);
  REQUIRE_FALSE(asked.empty());
  CHECK(asked.front() == 2);
}

TEST_CASE_METHOD(World, "half of the ring counts from the newest checkpoint, of any leader",
                 "[requests][SCHEDULE-2]") {
  config.checkpoint_every_s = 1000;
  config.ring_bytes = 1 << 20;
  auto requests = make();
  CheckpointNote note;
  note.came = CheckpointNote::kTaken;
  note.index = 7;
  note.end = 300'000;
  requests.heard(note, 1);
  requests.step(kSecond, 800'000, 1);
  CHECK(asked.empty());
  CHECK(requests.is_urgent(300'000 + (1 << 19)));
  requests.step(2 * kSecond, 300'000 + (1 << 19), 2);
  CHECK(asked == Replicas{1});
}

TEST_CASE_METHOD(World, "a group of one is not paused for the time that a return takes",
                 "[requests][ASK-1]") {
  config.checkpoint_every_s = 1000;
  config.checkpoint_log_mb = 64;
  const bool others = GENERATE(true, false);
  if (!others) {
    config.replicas = 1;
    members.resize(1);
  }
  auto requests = make();
  requests.step(kSecond, 0, 0);
  requests.ran(100, 0);
  requests.ran(200, replica::CheckpointSchedule::kReplayNs);
  requests.step(10 * kSecond, 200, 1);
  CHECK(asked.empty() == !others);
}
