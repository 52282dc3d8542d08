// SPDX-License-Identifier: Apache-2.0
// GOAL    An operator gets one answer to each request: what was done, or the reason for the
//         refusal.
// METHOD  OperatorRequests of a fake group.
// CHECKS  REQ-1, REQ-2; transferring leadership and becoming eligible again.
#include "proxy/host/operator_requests.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "dmt/base/clock.h"
#include "tests/unit/node/fake_consensus.h"

using namespace crane;
using namespace crane::node;

namespace {

constexpr std::int64_t kLongNs = 60'000'000'000;

struct World : OperatorRequests::Owner {
  unsigned with_servers = 3;  // replicas 0, 1, ..
  Config config;
  test::FakeConsensus group;
  replica::Leadership leadership;
  Supervisor supervisor{-1};
  bool dumping = false, drained = false;
  int left = 0;  // times
  std::int64_t drain_ns = 0;
  std::vector<std::uint32_t> signals;
  std::unique_ptr<OperatorRequests> requests;

  World() {
    config.replicas = 3;
    config.replica = 0;
    requests = std::make_unique<OperatorRequests>(config, group, leadership, supervisor, *this);
  }
  virtual ~World() = default;
  nlohmann::json status_json() override { return {{"role", "leader"}}; }
  std::string ask_checkpoint(const control::Message&) override {
    return accepted("asked for a checkpoint");
  }
  std::string ask_upgrade(const control::Message&) override { return {}; }
  bool takes_checkpoint() const override { return dumping; }
  void send_signal(std::uint32_t signo) override { signals.push_back(signo); }
  void drain() override { drained = true; }
  void leave() override { ++left; }
  bool has_server(ReplicaId who) const override { return value(who) < with_servers; }
  void abdicate(const char* why) override { group.abdicate(why, {}); }
  std::int64_t input_drain_ns() const override { return drain_ns; }
  nlohmann::json ask(const std::string& text) const {
    return nlohmann::json::parse(requests->answer(text));
  }
  void lead() { leadership.role(consensus::Role::kLeader, View{256}, ReplicaId{0}); }
};

}  // namespace

TEST_CASE_METHOD(World, "an invalid request gets an error answer", "[requests][REQ-1]") {
  CHECK(ask("nonsense")["ok"] == false);
  CHECK(ask(R"({"do":"nothing of the kind"})")["ok"] == false);
  CHECK(ask(R"({"do":"signal","signo":9999})")["ok"] == false);
}

TEST_CASE_METHOD(World, "the status is that of the node", "[requests]") {
  CHECK(ask(R"({"do":"status"})")["role"] == "leader");
}

TEST_CASE_METHOD(World, "a signal passes through the leader's log", "[requests]") {
  CHECK(ask(R"({"do":"signal","signo":1})")["error"] == "not_leader");
  lead();
  CHECK(ask(R"({"do":"signal","signo":1})")["ok"] == true);
  CHECK(signals == std::vector<std::uint32_t>{1});
}

TEST_CASE_METHOD(World, "the group changes its members", "[requests]") {
  CHECK(ask(R"({"do":"member","change":"remove","replica":2})")["ok"] == true);
  group.next_error = {Code::kBusy, 0, "a change is under way"};
  CHECK(ask(R"({"do":"member","change":"remove","replica":1})")["error"] == "busy");
}

TEST_CASE_METHOD(World, "the log is copied into a file of the replica's directory", "[requests]") {
  config.dir = "/groups/shop";
  const std::string request =
      R"({"do":"copy_log","view":513,"index":10,"position":4096,"through":12,"file":77})";
  const auto begun = ask(request);
  CHECK(begun["ok"] == true);
  CHECK(begun["done"] == false);
  const auto done = ask(request);
  CHECK(done["done"] == true);
  CHECK(done["last"] == 12);
  CHECK(group.asked.back() == "copy 513 10 4096 12 /groups/shop/r0/log-77");
  for (const auto& [code, kind] : {std::pair{Code::kGone, "gone"},
                                   {Code::kBusy, "busy"},
                                   {Code::kUnsupported, "unsupported"},
                                   {Code::kFull, "full"},
                                   {Code::kSystem, "failed"}}) {
    group.next_error = {code, 0, "for a reason"};
    CHECK(ask(request)["error"] == kind);
  }
  CHECK(ask(R"({"do":"copy_log","view":513})")["error"] == "missing_field");
}

TEST_CASE_METHOD(World, "a replica that the group needs does not leave", "[requests][REQ-2]") {
  group.present[1].connected = false;
  CHECK(ask(R"({"do":"leave"})")["error"] == "needed");
  CHECK_FALSE(drained);
  group.present[1].connected = true;
  dumping = true;
  CHECK(ask(R"({"do":"leave"})")["error"] == "busy");
  dumping = false;
  CHECK(ask(R"({"do":"leave"})")["ok"] == true);
  CHECK(drained);
}

TEST_CASE_METHOD(World, "a leader does not leave before it has transferred leadership",
                 "[requests]") {
  lead();
  CHECK(ask(R"({"do":"leave"})")["error"] == "busy");
  CHECK_FALSE(drained);
}

TEST_CASE_METHOD(World, "a leader that the group needs is refused before it transfers leadership",
                 "[requests][REQ-2]") {
  lead();
  group.present[2].connected = false;
  CHECK(ask(R"({"do":"leave"})")["error"] == "needed");
  group.present[2].connected = true;
  with_servers = 1;
  CHECK(ask(R"({"do":"leave"})")["error"] == "needed");
  with_servers = 2;
  CHECK(ask(R"({"do":"leave"})")["error"] == "busy");
  CHECK(group.asked.empty());
}

TEST_CASE_METHOD(World, "after a transfer it may lead again at once, as the last choice",
                 "[requests]") {
  CHECK(ask(R"({"do":"transfer"})")["error"] == "not_leader");
  lead();
  CHECK(ask(R"({"do":"transfer"})")["ok"] == true);
  REQUIRE(group.asked.size() == 2);
  CHECK(group.asked.back() == "fit");
  CHECK(requests->step(monotonic_ns()) == replica::kNever);
}

TEST_CASE_METHOD(World, "client input that was sent is taken in before leadership is transferred",
                 "[requests]") {
  lead();
  drain_ns = kLongNs;
  const std::int64_t now = monotonic_ns();
  CHECK(ask(R"({"do":"transfer","to":2})")["ok"] == true);
  CHECK(requests->hands_over());
  CHECK(requests->step(now) != replica::kNever);
  CHECK(group.asked.empty());
  CHECK(requests->step(now + 2 * kLongNs) == replica::kNever);
  CHECK_FALSE(requests->hands_over());
  CHECK(group.asked.back() == "transfer 2");
  // Another replica leads meanwhile.
  CHECK(ask(R"({"do":"transfer","to":1})")["ok"] == true);
  leadership.role(consensus::Role::kFollower, View{513}, ReplicaId{1});
  (void)requests->step(now + 4 * kLongNs);
  CHECK(group.asked.size() == 1);
  CHECK_FALSE(requests->hands_over());
}

TEST_CASE_METHOD(World, "client input that was sent is taken in before the leader ends",
                 "[requests]") {
  drain_ns = kLongNs;
  requests->leave_after_drain();  // a follower has no such input
  CHECK(left == 1);
  lead();
  const std::int64_t now = monotonic_ns();
  requests->leave_after_drain();
  CHECK(requests->hands_over());
  (void)requests->step(now);
  CHECK(left == 1);
  // It also stops waiting when it no longer leads.
  leadership.role(consensus::Role::kFollower, View{513}, ReplicaId{1});
  (void)requests->step(now + 2 * kLongNs);
  CHECK(left == 2);
}

TEST_CASE_METHOD(World, "leadership goes to the replica named in the request", "[requests]") {
  lead();
  CHECK(ask(R"({"do":"transfer","to":2})")["ok"] == true);
  CHECK(group.asked.back() == "transfer 2");
  CHECK(ask(R"({"do":"transfer","to":0})")["ok"] == true);  // it leads already
  CHECK(group.asked.size() == 1);
}

TEST_CASE_METHOD(World, "without crane-run a request to start a node is refused", "[requests]") {
  CHECK(ask(R"({"do":"bring_back","replica":1})")["error"] == "unsupported");
  CHECK(ask(R"({"do":"bring_back","replica":7})")["ok"] == false);
}
