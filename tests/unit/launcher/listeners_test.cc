// SPDX-License-Identifier: Apache-2.0
// GOAL    The sockets that crane-run opens: at the server's addresses, published as requested.
// METHOD  Real Listeners on loopback addresses.
// CHECKS  One socket per address and port; --publish with and without an address; ports in use.
#include "runtime/launcher/run/listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <optional>
#include <utility>

#include "tests/unit/clients/loopback_listener.h"

using namespace crane::launcher;
using crane::setup::Status;
using crane::setup::status_of;

TEST_CASE("listeners: one socket per port, opened once, published as requested", "[launcher]") {
  const Listeners probe({});
  int fd = -1;
  bool fresh = false;
  // Port 0 means "any free port": bind it, read the number, publish it again.
  std::optional<crane::proxy::LoopbackListener> holder(std::in_place);
  const sockaddr_in address = holder->address;
  const std::uint16_t port = holder->port();
  Listeners listeners({{port, 80}});
  Listeners::Request ask{{80, "127.0.0.1"}, 5, true};
  const auto takes_clients = [&address] {
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    const auto* to = reinterpret_cast<const sockaddr*>(&address);
    const bool takes = connect(client, to, sizeof address) == 0;
    close(client);
    return takes;
  };
  const auto taken = listeners.open(ask, fd, fresh);
  CHECK(status_of(taken) == Status::kPortTaken);
  CHECK(taken.error().text.find(std::to_string(port)) != std::string::npos);
  holder.reset();
  REQUIRE(listeners.open(ask, fd, fresh).ok());
  CHECK_FALSE(fresh);
  CHECK_FALSE(takes_clients());  // the server is bound, and may connect from this address
  ask.for_bind = false;
  REQUIRE(listeners.open(ask, fd, fresh).ok());
  CHECK(fresh);
  CHECK(takes_clients());
  int again = -1;
  REQUIRE(listeners.open(ask, again, fresh).ok());
  CHECK_FALSE(fresh);
  CHECK(again == fd);
  CHECK(listeners.sockets().at({80, "127.0.0.1"}).published == port);
  CHECK(listeners.publishes(80));
  CHECK_FALSE(listeners.publishes(81));
  CHECK(listeners.unreached(81));
  CHECK_FALSE(listeners.unreached(81));
  CHECK(probe.publishes(81));
}

TEST_CASE("listeners: each address of a port has a socket; --publish ADDRESS gives one for all",
          "[launcher]") {
  int one = -1, two = -1;
  bool fresh = false;
  Listeners apart({});
  const std::uint16_t port = crane::proxy::LoopbackListener().port();
  REQUIRE(apart.open({{port, "127.0.0.1"}, 5, false}, one, fresh).ok());
  REQUIRE(apart.open({{port, "127.0.0.2"}, 5, false}, two, fresh).ok());
  CHECK(fresh);
  CHECK(one != two);
  // The kernel refuses all addresses while this process has the port at one of them.
  CHECK_FALSE(apart.open({{port, "0.0.0.0"}, 5, false}, two, fresh).ok());
  CHECK(two == -EADDRINUSE);
  CHECK(apart.waits_for_own({port, "0.0.0.0"}));
  CHECK_FALSE(apart.waits_for_own({port, "127.0.0.3"}));

  const std::uint16_t ours = crane::proxy::LoopbackListener().port();
  Listeners together({{ours, 80, "127.0.0.1"}});
  REQUIRE(together.open({{80, "0.0.0.0"}, 5, false}, one, fresh).ok());
  CHECK(fresh);
  REQUIRE(together.open({{80, "::1"}, 5, false}, two, fresh).ok());
  CHECK_FALSE(fresh);
  CHECK(one == two);
  CHECK(together.key_of({80, "::1"}) == crane::Place(80));
  CHECK(together.sockets().at({80}).address == "127.0.0.1");

  Listeners absent({});
  const auto refused = absent.open({{port, "192.0.2.77"}, 5, false}, one, fresh);
  CHECK(status_of(refused) == Status::kPortTaken);
  CHECK(refused.error().text.find("192.0.2.77") != std::string::npos);
}
