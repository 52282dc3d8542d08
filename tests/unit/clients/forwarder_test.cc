// SPDX-License-Identifier: Apache-2.0
// GOAL    A client that connects to a follower's host cannot distinguish it from the leader's.
// METHOD  A real Forwarder in an event loop between two loopback sockets of this test.
// CHECKS  Bytes in both directions, half closes, resets, a target that refuses, FORWARD-1.
#include "proxy/clients/forwarder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <random>
#include <string>

using namespace crane::node;

namespace {

constexpr int kLimitMs = 20'000;

struct World final : private crane::proxy::Woken {
  event_base* base = event_base_new();
  Forwarder forwarder{base, *this};
  int listener = -1, client = -1, leader = -1;
  std::uint16_t port = 0;

  void woke() override {}
  World() {
    listener = bound(port);
    REQUIRE(listen(listener, 8) == 0);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    forwarder.set_target("127.0.0.1");
  }
  ~World() {
    forwarder.set_target("");
    for (const int fd : {listener, client, leader}) {
      if (fd >= 0) close(fd);
    }
    event_base_free(base);
  }

  static int bound(std::uint16_t& port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    return fd;
  }
  template <typename Condition>
  bool until(Condition condition) {
    for (int waited = 0; waited < kLimitMs; ++waited) {
      if (condition()) return true;
      event_base_loop(base, EVLOOP_NONBLOCK);
      poll(nullptr, 0, 1);  // poll
    }
    return false;
  }
  // Makes a pair of connected TCP sockets: the test's, and the one given to the forwarder.
  void arrive(std::uint16_t to) {
    std::uint16_t own = 0;
    const int door = bound(own);
    REQUIRE(listen(door, 1) == 0);
    client = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(own);
    REQUIRE(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const int taken = accept4(door, nullptr, nullptr, SOCK_NONBLOCK);
    close(door);
    fcntl(client, F_SETFL, O_NONBLOCK);
    forwarder.take(taken, to, "peer");
  }
  void arrive_and_accept() {
    arrive(port);
    REQUIRE(
        until([&] { return (leader = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0; }));
  }
  // Sends `text` from one side while the other side reads; returns what arrived.
  std::string pump(int from, int to, const std::string& text) {
    std::string got;
    std::size_t sent = 0;
    until([&] {
      if (sent < text.size()) {
        const ssize_t n = send(from, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (n > 0) sent += static_cast<std::size_t>(n);
      }
      char buffer[65536];
      const ssize_t n = recv(to, buffer, sizeof buffer, 0);
      if (n > 0) got.append(buffer, static_cast<std::size_t>(n));
      return got.size() >= text.size();
    });
    return got;
  }
  // Returns 0 at EOF, or an errno like ECONNRESET after a reset.
  int end_of(int fd) {
    int how = -1;
    until([&] {
      char byte;
      const ssize_t n = recv(fd, &byte, 1, 0);
      if (n == 0) how = 0;
      if (n < 0 && errno != EAGAIN) how = errno;
      return how >= 0;
    });
    return how;
  }
};

std::string random_text(std::size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

}  // namespace

TEST_CASE("forwarder: bytes pass in both directions, more than the buffers hold", "[forwarder]") {
  World w;
  w.arrive_and_accept();
  const std::string much = random_text(8 << 20);
  CHECK(w.pump(w.client, w.leader, much) == much);
  CHECK(w.pump(w.leader, w.client, much) == much);
  CHECK(w.forwarder.connections() == 1);
}

TEST_CASE("forwarder: a half close arrives after the bytes before it; the rest still flows",
          "[forwarder]") {
  World w;
  w.arrive_and_accept();
  REQUIRE(send(w.client, "ask", 3, 0) == 3);
  shutdown(w.client, SHUT_WR);
  CHECK(w.pump(-1, w.leader, "ask") == "ask");
  CHECK(w.end_of(w.leader) == 0);
  const std::string much = random_text(2 << 20);
  CHECK(w.pump(w.leader, w.client, much) == much);
  shutdown(w.leader, SHUT_WR);
  CHECK(w.end_of(w.client) == 0);
  CHECK(w.until([&] { return w.forwarder.connections() == 0; }));
}

TEST_CASE("forwarder: a reset of one side resets the other side", "[forwarder]") {
  World w;
  w.arrive_and_accept();
  reset_socket(w.leader);
  w.leader = -1;
  CHECK(w.end_of(w.client) == ECONNRESET);
  CHECK(w.forwarder.connections() == 0);
}

TEST_CASE("forwarder: the client is reset if the leader's host refuses the connection",
          "[forwarder]") {
  World w;
  std::uint16_t nobody = 0;
  const int held = World::bound(nobody);  // bound, not listening
  w.arrive(nobody);
  CHECK(w.end_of(w.client) == ECONNRESET);
  close(held);
}

TEST_CASE("W1: when the leader changes, connections to the old leader are reset", "[forwarder]") {
  World w;
  w.arrive_and_accept();
  REQUIRE(w.pump(w.client, w.leader, "x") == "x");
  w.forwarder.set_target("127.0.0.1");  // the same: nothing happens
  CHECK(w.forwarder.connections() == 1);
  w.forwarder.set_target("127.0.0.2");
  CHECK(w.forwarder.connections() == 0);
  CHECK(w.end_of(w.client) == ECONNRESET);
  CHECK(w.end_of(w.leader) == ECONNRESET);
  w.forwarder.set_target("");
  close(w.client);
  w.arrive(w.port);
  CHECK(w.end_of(w.client) == ECONNRESET);
}
