// SPDX-License-Identifier: Apache-2.0
// GOAL    Clients of a follower's host are forwarded to the leader's host, or wait, or are refused.
//         The ports belong to the host.
// METHOD  A real HostRole with a Proxy on loopback addresses; the test is the leader's host.
// CHECKS  HOST-1; published ports; ports in use; no quorum.
#include "proxy/host/host_role.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/clients/fake_host.h"

using namespace crane;
using namespace crane::node;

namespace {

constexpr int kLimitMs = 20'000;
constexpr std::uint16_t kServerPort = 8080;
constexpr View kView{256};

int bound(const char* address, std::uint16_t& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  inet_pton(AF_INET, address, &a.sin_addr);
  socklen_t size = sizeof a;
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&a), size) == 0);
  REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&a), &size) == 0);
  port = ntohs(a.sin_port);
  return fd;
}

proxy::ProxyOptions alone() {
  proxy::ProxyOptions options;
  options.shares_listeners = false;
  return options;
}

struct World : HostRole::Owner {
  event_base* base = event_base_new();
  Config config;
  replica::Leadership leadership;
  proxy::FakeHost node;
  std::unique_ptr<proxy::Proxy> proxy;
  std::unique_ptr<HostRole> host;
  std::uint16_t port = 0;  // of both hosts
  int leader = -1;         // the leader's host listens there
  std::uint16_t taken = 0;
  int other = -1;  // a foreign socket at `taken` of this host
  std::vector<int> clients;
  std::vector<std::string> failures;

  World() {
    leader = bound("127.0.0.1", port);
    REQUIRE(listen(leader, 8) == 0);
    other = bound("127.0.0.2", taken);
    REQUIRE(listen(other, 1) == 0);
    config.replica = 1;
    config.replicas = 3;
    setup::GroupFile file;
    for (int i = 1; i <= 3; ++i) {
      setup::HostReplica replica;
      replica.clients = "127.0.0." + std::to_string(i);
      file.replicas.push_back(replica);
    }
    file.forward = true;
    file.listen_any = false;
    file.publish = {{port, kServerPort}, {taken, taken}};
    config.host = file;
    proxy = std::make_unique<proxy::Proxy>(base, alone(), node);
    host = std::make_unique<HostRole>(base, config, *proxy, leadership, *this);
    REQUIRE(host->open());
    proxy->set_listening(kServerPort, true);
  }
  virtual ~World() {
    for (const int fd : clients) close(fd);
    close(leader);
    close(other);
    host.reset();
    proxy.reset();
    event_base_loop(base, EVLOOP_NONBLOCK);  // libevent then frees its buffers
    CHECK(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    event_base_free(base);
  }
  void woke() override {}
  void fail(ExitStatus, const std::string& why) override { failures.push_back(why); }
  void follow(std::uint8_t replica, bool refuses = false) {
    leadership.role(consensus::Role::kFollower, kView, ReplicaId{replica});
    host->follow(refuses);
  }
  // Connects to the follower's host. Returns errno, or 0.
  int connect() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    clients.push_back(fd);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    inet_pton(AF_INET, "127.0.0.2", &a.sin_addr);
    return ::connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 ? 0 : errno;
  }
  // Runs all due events and returns whether the leader's host gets a client.
  bool passed_on(int limit_ms = kLimitMs) {
    for (int waited = 0; waited < limit_ms; ++waited) {
      event_base_loop(base, EVLOOP_NONBLOCK);
      pollfd one{leader, POLLIN, 0};
      if (poll(&one, 1, 1) == 1) return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE_METHOD(World, "clients of a follower are forwarded to the leader's host",
                 "[host_role][HOST-1]") {
  host->open_listener(kServerPort, 8);
  REQUIRE(host->ports() == HostRole::Ports{{kServerPort, port}});
  follow(0);
  REQUIRE(connect() == 0);
  CHECK(passed_on());
  CHECK(host->connections() == 1);
}

TEST_CASE_METHOD(World, "while no leader is known, clients wait in the kernel",
                 "[host_role][HOST-1]") {
  host->open_listener(kServerPort, 8);
  follow(255);
  REQUIRE(connect() == 0);
  CHECK_FALSE(passed_on(20));
  CHECK(host->connections() == 0);
  follow(0);  // for the waiting client
  CHECK(passed_on());
}

TEST_CASE_METHOD(World, "without a quorum clients are refused", "[host_role][HOST-1]") {
  host->open_listener(kServerPort, 8);
  follow(0);
  host->refuse(true);
  CHECK(connect() == ECONNREFUSED);
  host->refuse(false);
  REQUIRE(connect() == 0);
  CHECK(passed_on());
}

TEST_CASE_METHOD(World, "a port in use ends a replica that serves at no other port",
                 "[host_role]") {
  CHECK(host->try_listener(taken, 8) == EADDRINUSE);
  host->open_listener(taken, 8);
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].find("cannot listen on port") != std::string::npos);
  host->open_listener(kServerPort, 8);
  host->open_listener(taken, 8);
  CHECK(failures.size() == 1);
}

TEST_CASE_METHOD(World, "a port that the server has bound is reserved but takes no clients",
                 "[host_role][LISTEN-2]") {
  proxy->set_listening(kServerPort, false);
  REQUIRE(host->hold_port(kServerPort, 8) == 0);
  CHECK(connect() == ECONNREFUSED);
  proxy->set_listening(kServerPort, true);
  CHECK(connect() == 0);
}

TEST_CASE_METHOD(World, "a port that is not published is not opened on the host", "[host_role]") {
  const std::uint16_t inside = taken == 4369 ? 4370 : 4369;
  CHECK(host->try_listener(inside, 8) == 0);
  host->open_listener(inside, 8);
  CHECK(host->ports().empty());
  CHECK(failures.empty());
}
