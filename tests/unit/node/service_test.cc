// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica takes clients exactly while it leads and its server knows that. It proposes
//         nothing of an earlier leadership.
// METHOD  Leadership, Proposals, Proxy and Service of one replica; the test is consensus, the log
//         and the server.
// CHECKS  SERVE-1, PROPOSE-1, LISTEN-1; a lost quorum; ports opened before.
#include "proxy/host/service.h"

#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "proxy/clients/encode.h"
#include "proxy/host/listeners.h"
#include "tests/unit/clients/fake_host.h"
#include "tests/unit/node/segment_memory.h"

using namespace crane;
using namespace crane::node;

namespace {

constexpr View kFirst{256}, kSecond{512};

struct World : test::SegmentMemory, Proposals::Owner, Service::Owner {
  struct Proposed {
    EntryType type;
    std::vector<std::byte> body;
  };
  event_base* base = event_base_new();
  Config config = configuration();
  Agreed agreed{};
  std::vector<Proposed> log;
  Index applied{};
  std::vector<std::string> notifications;
  std::vector<consensus::MemberStatus> present;
  bool supervised = true, stopped = false;
  replica::Leadership leadership;
  proxy::FakeHost node;
  proxy::Proxy proxy{base, {}, node};
  Proposals proposals{*this, config, agreed, w, leadership, proxy};
  Service service{*this, w, leadership, proxy, proposals, nullptr};

  World() { agreed.fill(7); }
  Result<Index> append(const replica::Leadership::Proposal& proposal, GrantTurns,
                       std::span<const std::byte> body) override {
    log.push_back({proposal.type, {body.begin(), body.end()}});
    return Index{log.size()};
  }
  std::vector<consensus::MemberStatus> members() override { return present; }
  void drain_server() override { notifications.emplace_back("drained"); }
  void reign_began() override { notifications.emplace_back("started"); }
  void status_changed() override { notifications.emplace_back("changed"); }
  bool has_supervisor() const override { return supervised; }
  bool supervisor_stopped() const override { return stopped; }
  virtual ~World() { event_base_free(base); }
  static Config configuration() {
    Config c;
    c.replicas = 3;
    c.lag_ms = 100;
    return c;
  }
  void lead(View view = kFirst) {
    leadership.role(consensus::Role::kLeader, view, ReplicaId{0});
    follow();
  }
  void follow(bool is_active = true, bool stopping = false) {
    service.follow_role(applied, is_active, stopping, 1000);
  }
  bool leads_in_segment() const { return w.scheduler.leading.load() != 0; }
};

using Notifications = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(World, "clients are taken when the replica's own server knows the leader",
                 "[service][SERVE-1]") {
  lead();
  REQUIRE(log.size() == 1);
  CHECK(log[0].type == EntryType::kStart);
  CHECK(leads_in_segment());
  CHECK_FALSE(proxy.leading());
  applied = Index{1};
  follow();
  CHECK(proxy.leading());
  CHECK(log.size() == 1);
  CHECK(notifications == Notifications{"changed", "started", "drained", "changed"});
}

TEST_CASE_METHOD(World, "an earlier leader's sockets are adopted after START", "[service]") {
  CHECK(service.due_ns() == replica::kNever);
  lead();
  CHECK(service.due_ns() == 1000);  // at once, but START goes to the server first
  follow();
  CHECK(service.due_ns() == replica::kNever);
  lead(kSecond);
  leadership.role(consensus::Role::kFollower, View{768}, ReplicaId{1});
  follow();
  CHECK(service.due_ns() == replica::kNever);  // deposed before that
}

TEST_CASE_METHOD(World, "START contains the values that must be equal on all replicas",
                 "[service]") {
  lead();
  Agreed agreed_values{};
  REQUIRE(log.at(0).body.size() == sizeof(StartBody) + sizeof agreed_values);
  std::memcpy(agreed_values.data(), log[0].body.data() + sizeof(StartBody), sizeof agreed_values);
  CHECK(agreed_values == agreed);
}

TEST_CASE_METHOD(World, "a deposed replica resets its clients first", "[service][SERVE-1]") {
  lead();
  applied = Index{1};
  follow();
  leadership.role(consensus::Role::kFollower, kSecond, ReplicaId{1});
  notifications.clear();
  follow();
  CHECK_FALSE(proxy.leading());
  CHECK_FALSE(leads_in_segment());
  CHECK(notifications == Notifications{"changed", "changed"});
  CHECK(proposals.due_ns() == replica::kNever);
}

TEST_CASE_METHOD(World, "the START of an earlier leadership takes no clients",
                 "[service][SERVE-1]") {
  lead();
  lead(kSecond);  // deposed and elected again, unseen
  REQUIRE(log.size() == 2);
  applied = Index{1};
  follow();
  CHECK_FALSE(proxy.leading());
  applied = Index{2};
  follow();
  CHECK(proxy.leading());
}

TEST_CASE_METHOD(World, "a replica that stops takes no more clients", "[service]") {
  lead();
  applied = Index{1};
  follow();
  follow(false, true);
  CHECK_FALSE(proxy.leading());
  CHECK(leadership.leads());
}

TEST_CASE_METHOD(World, "a new leadership waits for no follower", "[service][PROPOSE-1]") {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  lead();
  for (std::uint8_t i = 0; i < 3; ++i) {
    consensus::MemberStatus m{};
    m.id = ReplicaId{i};
    m.role = consensus::MemberRole::kVoter;
    m.connected = true;
    present.push_back(m);
  }
  proposals.pace(Index{1}, 0, false, kSecondNs);
  proposals.pace(Index{9}, 0, false, 2 * kSecondNs);
  proposals.pace(Index{10}, 0, false, 3 * kSecondNs);
  const replica::ProgressMessage late{1, 0};
  proposals.on_report(ReplicaId{1}, late, 3 * kSecondNs);
  proposals.on_report(ReplicaId{2}, late, 3 * kSecondNs);
  proposals.pace(Index{10}, 0, false, 3 * kSecondNs + 1);
  CHECK(proxy.paused());
  lead(kSecond);
  proposals.pace(Index{10}, 0, false, 3 * kSecondNs + 2);
  CHECK_FALSE(proxy.paused());
}

TEST_CASE_METHOD(World, "an outage that ends without admissions is a reason for a round",
                 "[service][CLOCK-3]") {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  const auto commit = [this](std::int64_t now_ns) {
    leadership.committed({kFirst, Index{log.size()}}, leadership.now(now_ns), now_ns);
  };
  lead();
  applied = leadership.proposed();
  follow();
  REQUIRE(proxy.leading());
  commit(1000);
  leadership.runs(1000, 1000);
  proposals.propose_grants(applied, 1000);
  REQUIRE_FALSE(proposals.has_news(applied));
  REQUIRE(proposals.propose(EntryType::kPassed, 0, {}, 1000).ok());
  leadership.runs(7 * kSecondNs, 7 * kSecondNs);
  CHECK_FALSE(proposals.has_news(applied));  // the outage lasts: nothing can be done
  commit(7 * kSecondNs);
  CHECK(proposals.has_news(applied));
  proxy.pause(true);
  CHECK_FALSE(proposals.has_news(applied));
  proxy.pause(false);
  CHECK(proposals.has_news(applied));
  REQUIRE(proxy.read_all(leadership.outages()));
  leadership.resume_time(7 * kSecondNs);
  CHECK_FALSE(proposals.has_news(applied));
}

TEST_CASE_METHOD(World, "a lost quorum and its return are reported", "[service]") {
  consensus::QuorumStatus seen{};
  seen.voters = seen.answering = 3;
  seen.led = true;
  service.look_at_quorum(seen, 1);
  notifications.clear();
  service.look_at_quorum(seen, 2);
  CHECK(notifications.empty());
  seen.answering = 1;
  service.look_at_quorum(seen, 2);
  CHECK_FALSE(notifications.empty());
  CHECK(service.why_not_served() ==
        "no quorum: 1 of 3 replicas answer; clients wait until crane-run has brought the others "
        "back");
  stopped = true;
  CHECK(service.why_not_served() ==
        "no quorum: 1 of 3 replicas answer; clients wait until crane-run, which is stopped, "
        "continues (kill -CONT) and has brought the others back");
  stopped = supervised = false;
  CHECK(service.why_not_served() ==
        "no quorum: 1 of 3 replicas answer; clients wait until crane-run is started again with "
        "the same command");
  seen.answering = 2;
  service.look_at_quorum(seen, 3);
  CHECK(service.why_not_served().empty());
  seen.led = false;
  service.look_at_quorum(seen, 3 + replica::QuorumWatch::kNoLeaderNs);
  CHECK(service.why_not_served() == "no leader: 2 of 3 replicas answer; clients wait");
}

TEST_CASE_METHOD(World, "a stopped crane-run does not attend to the group", "[service]") {
  CHECK(service.attended());
  stopped = true;
  CHECK(service.supervised());
  CHECK_FALSE(service.attended());
  stopped = supervised = false;
  CHECK_FALSE(service.attended());
}

TEST_CASE_METHOD(World, "a new crane-run gets requests for all ports of the server",
                 "[service][LISTEN-1]") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
  Supervisor supervisor(ends[0]);
  Listeners listeners(w, proxy, nullptr, supervisor, proposals);
  w.files[1].kind = dmt::FileKind::kListener;
  w.files[1].listener.port = 6379;
  w.files[1].listener.bound = {AF_INET, 6379, 0, {127, 0, 0, 1}};
  w.files[1].listener.backlog = 511;
  w.files[2].kind = dmt::FileKind::kConnection;
  w.scheduler.files_used = 2;
  listeners.open_all(false);
  char agreed_values[512] = "";
  REQUIRE(recv(ends[1], agreed_values, sizeof agreed_values - 1, MSG_DONTWAIT) > 0);
  CHECK(std::string(agreed_values).find("6379") != std::string::npos);
  CHECK(std::string(agreed_values).find("127.0.0.1") != std::string::npos);
  CHECK(recv(ends[1], agreed_values, sizeof agreed_values, MSG_DONTWAIT) < 0);
  close(ends[1]);
}
