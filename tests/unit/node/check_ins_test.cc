// SPDX-License-Identifier: Apache-2.0
// GOAL    The node learns of every process that checks in, and waits for none of them.
// METHOD  Clients of a listening socket in this process, and passes of the event loop that never
//         wait: a reader that blocked would hang the test.
// CHECKS  A client that sends later, never sends, ends, or sends too little; too many clients at
//         once.
#include "proxy/host/check_ins.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/node/check_in_client.h"

using namespace crane;
using namespace crane::node;

namespace {

struct Node : CheckIns::Owner {
  Node() {
    listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    // The kernel chooses a name.
    sockaddr_un any{};
    any.sun_family = AF_UNIX;
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any.sun_family) == 0);
    REQUIRE(::listen(listener, 512) == 0);
    base = event_base_new();
    check_ins = std::make_unique<CheckIns>(base, listener, *this);
  }
  virtual ~Node() {
    check_ins.reset();
    event_base_free(base);
    for (const int fd : clients) ::close(fd);
    ::close(listener);
  }
  void checked_in(const dmt::CheckIn& in, pid_t host_pid) override {
    taken.emplace_back(in.process, host_pid);
  }
  int connect() {
    clients.push_back(test::connect_to(listener));
    return clients.back();
  }
  void send(int fd, std::uint16_t process, std::size_t bytes = sizeof(dmt::CheckIn)) {
    test::send_check_in(fd, process, bytes);
  }
  void turn() { event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK); }

  int listener = -1;
  event_base* base = nullptr;
  std::unique_ptr<CheckIns> check_ins;
  std::vector<std::pair<std::uint16_t, pid_t>> taken;
  std::vector<int> clients;
};

}  // namespace

TEST_CASE("a client that has not sent yet delays no other, and is taken when it sends",
          "[check_ins]") {
  Node node;
  const int late = node.connect();
  node.send(node.connect(), 2);
  node.turn();
  REQUIRE(node.taken == std::vector<std::pair<std::uint16_t, pid_t>>{{2, ::getpid()}});
  REQUIRE(node.check_ins->silent() == 1);
  node.turn();
  REQUIRE(node.taken.size() == 1);
  node.send(late, 3);
  node.turn();
  REQUIRE(node.taken.back() == std::pair<std::uint16_t, pid_t>{3, ::getpid()});
  REQUIRE(node.check_ins->silent() == 0);
}

TEST_CASE("waiting check-ins are taken at once on request", "[check_ins]") {
  Node node;
  const int first = node.connect();
  node.turn();
  node.send(first, 2);
  node.check_ins->take_waiting();
  REQUIRE(node.taken.size() == 1);
  node.send(node.connect(), 3);
  node.check_ins->take_waiting();
  REQUIRE(node.taken.size() == 2);
  CHECK(node.taken[0].first == 2);
  CHECK(node.taken[1].first == 3);
}

TEST_CASE("the check-ins of a process are taken in the order of sending", "[check_ins]") {
  Node node;
  const int first = node.connect();
  node.turn();
  node.send(first, 2);
  node.send(node.connect(), 3);  // as after exec
  node.turn();
  REQUIRE(node.taken.size() == 2);
  CHECK(node.taken[0].first == 2);
  CHECK(node.taken[1].first == 3);
}

TEST_CASE("a client that ends before it has sent, or sends too little, is not taken",
          "[check_ins]") {
  Node node;
  const int ends = node.connect();
  const int little = node.connect();
  node.turn();
  REQUIRE(node.check_ins->silent() == 2);
  ::shutdown(ends, SHUT_RDWR);
  node.send(little, 4, 3);
  node.turn();
  CHECK(node.taken.empty());
  CHECK(node.check_ins->silent() == 0);
}

TEST_CASE("if too many clients are silent, the oldest connection is closed", "[check_ins]") {
  Node node;
  const int first = node.connect();
  node.turn();
  std::vector<int> others;
  for (std::size_t i = 0; i < CheckIns::kSilentMax; ++i) {
    others.push_back(node.connect());
    node.turn();
  }
  REQUIRE(node.check_ins->silent() == CheckIns::kSilentMax);
  char byte = 0;
  CHECK(::recv(first, &byte, 1, 0) == 0);  // its connection was closed
  node.send(others.front(), 5);
  node.turn();
  CHECK(node.taken.size() == 1);
}

TEST_CASE("check-ins of a server that has ended are dropped", "[check_ins]") {
  Node node;
  const int fd = node.connect();
  node.turn();
  node.check_ins->forget();
  node.turn();
  char byte = 0;
  CHECK(::recv(fd, &byte, 1, 0) == 0);
  CHECK(node.taken.empty());
}
