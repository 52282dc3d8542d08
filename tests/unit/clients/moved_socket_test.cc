// SPDX-License-Identifier: Apache-2.0
// GOAL    A connection continues with a socket that another host made, and its client does not
//         notice.
// METHOD  A network namespace and a real client. The old socket is abandoned; the new one is made
//         from a replica's knowledge.
// CHECKS  Both streams continue at the exact byte, whether the client has the output or lacks it.
#include "proxy/clients/moved_socket.h"
#include "proxy/clients/host_sockets.h"

#include <thread>

#include "tests/unit/clients/handshake.h"
#include "tests/unit/clients/namespace.h"

using namespace crane;
using namespace crane::proxy;

namespace {

struct Pair {
  Pair()
      : client(listener.connect()),
        server(host_socket(::accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK))) {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    REQUIRE(::getsockname(client, reinterpret_cast<sockaddr*>(&own), &size) == 0);
    peer = of_loopback(ntohs(own.sin_port));
  }
  ~Pair() { ::close(client); }
  void sends(const std::string& text) const {
    REQUIRE(::send(client, text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
  }
  // Returns `bytes` bytes received at the server's end.
  std::string gets_bytes(std::size_t bytes) const {
    std::string text(bytes, '\0');
    std::size_t got = 0;
    REQUIRE(turned_until(
        [&] {
          const ssize_t some = ::recv(server.fd(), text.data() + got, bytes - got, MSG_DONTWAIT);
          if (some > 0) got += static_cast<std::size_t>(some);
          return got == bytes;
        },
        [] { std::this_thread::yield(); }));
    return text;
  }
  void answers(const std::string& text) const {
    REQUIRE(server.send(std::as_bytes(std::span(text))) == static_cast<ssize_t>(text.size()));
  }
  std::string receives(std::size_t bytes) {
    std::string text(bytes, '\0');
    std::size_t got = 0;
    REQUIRE(turned_until(
        [&] {
          const ssize_t some = ::recv(client, text.data() + got, bytes - got, MSG_DONTWAIT);
          if (some > 0) got += static_cast<std::size_t>(some);
          return got == bytes || some == 0;
        },
        [&] { (void)send_rest(); }));
    text.resize(got);
    return text;
  }
  void makes(const TcpStart& start, std::uint64_t received, std::uint64_t put,
             std::span<const std::byte> output) {
    auto made = make_socket({start, of_loopback(listener.port()), peer, received, put, output},
                            clock += 5'001);
    INFO((made.ok() ? "" : made.error().message()));
    REQUIRE(made.ok());
    server = std::move(made).value();
  }
  void moves(const TcpStart& start, std::uint64_t received, std::uint64_t put,
             const std::string& output) {
    (void)leave_silently(std::move(server));
    makes(start, received, put, std::as_bytes(std::span(output)));  // at an odd clock
    REQUIRE(
        turned_until([&] { return segments_of(server) > 0; }, [] { std::this_thread::yield(); }));
    const std::vector<std::byte> lacks = leave_silently(std::move(server));
    makes(start, received, put + output.size() - lacks.size(), {});
    unsent = lacks;
    lacked = lacks.size();
    (void)send_rest();
  }

  bool send_rest() {
    const ssize_t took = unsent.empty() ? 0 : server.send(unsent);
    if (took > 0) unsent.erase(unsent.begin(), unsent.begin() + took);
    return unsent.empty();
  }

  LoopbackListener listener;
  const int client;
  std::uint32_t clock = 10'000;
  std::vector<std::byte> unsent;
  std::size_t lacked = 0;  // less than it was given if the kernel has retransmitted meanwhile
  ClientSocket server;
  VirtualAddress peer{};
};

void moves_once(std::uint64_t acknowledged, const std::string& lacks) {
  Pair pair;
  const auto start = tcp_start_of(pair.server, handshake_of(pair.server.fd()), 10'000);
  REQUIRE(start.ok());
  CHECK(start.value().mss > 500);
  // The kernel's clock for this connection when the group's clock is 10,000.
  const std::uint32_t now = repaired(pair.server.fd(), TCP_TIMESTAMP);
  CHECK(now != 0);
  CHECK(now - (start.value().clock + 10'000) < 60'000);
  pair.sends("hello");
  CHECK(pair.gets_bytes(5) == "hello");
  const std::string written = "it was written before";
  pair.answers(written);
  CHECK(pair.receives(written.size()) == written);
  pair.moves(start.value(), 5, acknowledged, written.substr(acknowledged) + lacks);
  CHECK((pair.receives(lacks.size()) == lacks));
  pair.sends(" again");
  CHECK(pair.gets_bytes(6) == " again");
  pair.answers(" and behind");
  CHECK(pair.receives(11) == " and behind");
  // The kernel counts from the creation of the socket.
  CHECK(turned_until(
      [&] {
        const auto state = pair.server.state(false);
        return state && state->put == pair.lacked + 11 && state->taken == 6;
      },
      [] { std::this_thread::yield(); }));
  pair.server.end_output();
  CHECK(pair.receives(1).empty());
}

}  // namespace

TEST_CASE("a connection continues with another socket", "[moved]") {
  const bool made = in_namespace([] {
    moves_once(21, "");  // the client has acknowledged all
    moves_once(3, "");   // this replica does not know that the client has acknowledged all
    moves_once(3, " and it was lost");
    moves_once(0, std::string(100'000, 'x'));
  });
  if (!made) WARN("not tested, it needs root to make a namespace");
}
