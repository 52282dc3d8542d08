// SPDX-License-Identifier: Apache-2.0
// GOAL    Each complete request gets one answer, in order; a client that breaks a limit gets a
//         status or is closed, and no other client notices.
// METHOD  HttpConnections in an event loop, with clients on real sockets of the loopback address.
// CHECKS  pieces, pipelines, HEAD, half-closed clients, refusals, places, the end with open
//         connections.
#include "proxy/host/http/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "tests/unit/waiting.h"

namespace crane::node {
namespace {

// A port that is free now.
std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

struct World : HttpConnections::Owner {
  event_base* base = event_base_new();
  const std::uint16_t port = free_port();
  std::unique_ptr<HttpConnections> http = std::make_unique<HttpConnections>(base, *this);

  World() { REQUIRE(http->listen("127.0.0.1:" + std::to_string(port)).ok()); }
  virtual ~World() {
    http.reset();
    event_base_free(base);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void woke() override {}
  HttpReply answer(const HttpRequest& request, const HttpPeer& peer) override {
    REQUIRE(peer.loopback);
    HttpReply reply;
    reply.body = request.path + "=" + request.body + ";";
    return reply;
  }
  bool until(const std::function<bool()>& condition) const {
    return test::eventually(
        [&] {
          event_base_loop(base, EVLOOP_NONBLOCK);
          return condition();
        },
        20'000);
  }
};

struct Client {
  explicit Client(const World& world) : world_(world) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(world.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~Client() { ::close(fd); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& bytes) const {
    REQUIRE(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  // Whether all these bytes arrive, and in this order.
  bool gets(const std::string& part) {
    return world_.until([&] {
      receive();
      const auto at = text.find(part);
      if (at == std::string::npos) return false;
      text.erase(0, at + part.size());
      return true;
    });
  }
  bool is_closed() {
    return world_.until([&] { return receive(), closed; });
  }
  void receive() {
    char bytes[4096];
    for (ssize_t got = 1; !closed && got > 0;) {
      got = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got > 0) text.append(bytes, static_cast<std::size_t>(got));
      closed = got == 0 || (got < 0 && errno != EAGAIN);
    }
  }

  const World& world_;
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string text;
  bool closed = false;
};

}  // namespace

TEST_CASE("requests in one connection get their answers in order, also in pieces") {
  World world;
  Client client(world);
  client.send("GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 4\r\n\r\nbo");
  CHECK(client.gets("/a=;"));
  client.send("dyHEAD /c HTTP/1.1\r\n\r\nGET /d HTTP/1.0\r\n\r\n");
  CHECK(client.gets("/b=body;"));
  CHECK(client.gets("Content-Length: 4\r\nConnection: keep-alive\r\n\r\nHTTP/1.1 200 OK"));
  CHECK(client.gets("Connection: close\r\n\r\n/d=;"));
  CHECK(client.is_closed());
  CHECK(world.http->counts().malformed == 0);
}

TEST_CASE("a client that sends no more still gets its answer") {
  World world;
  Client client(world);
  client.send("POST /b HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
  CHECK(client.gets("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send("x");
  ::shutdown(client.fd, SHUT_WR);
  CHECK(client.gets("/b=x;"));
  CHECK(client.is_closed());
}

TEST_CASE("a refused request gets its status, and the connection ends") {
  World world;
  for (const auto& [sent, want] :
       {std::pair{std::string(9000, 'x'), " 431 "},
        {std::string("x\r\n\r\n"), " 400 "},
        {std::string("POST / HTTP/1.1\r\nContent-Length: 70000\r\n\r\n") + std::string(70'000, 'y'),
         " 413 "}}) {
    CAPTURE(want);
    Client client(world);
    client.send(sent);
    CHECK(client.gets(want));
    CHECK(client.is_closed());
  }
  CHECK(world.http->counts().malformed == 3);
  CHECK(world.until([&] { return world.http->counts().open == 0; }));
}

TEST_CASE("connections beyond the places are closed, and the others are served") {
  World world;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < HttpPlaces::kMost; ++i) {
    clients.push_back(std::make_unique<Client>(world));
    REQUIRE(world.until([&] { return world.http->counts().open == clients.size(); }));
  }
  Client beyond(world);
  CHECK(beyond.is_closed());
  CHECK(world.http->counts().refused == 1);
  clients.back()->send("GET /a HTTP/1.1\r\n\r\n");
  CHECK(clients.back()->gets("/a=;"));
  clients.pop_back();
  CHECK(world.until([&] { return world.http->counts().open < HttpPlaces::kMost; }));
  Client next(world);
  next.send("GET /b HTTP/1.1\r\n\r\n");
  CHECK(next.gets("/b=;"));
}  // the service ends while clients are connected

TEST_CASE("a taken address is an error with its number") {
  World world;
  HttpConnections other(world.base, world);
  const Outcome done = other.listen("127.0.0.1:" + std::to_string(world.port));
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().detail == EADDRINUSE);
  CHECK_FALSE(other.listens());
}

}  // namespace crane::node
