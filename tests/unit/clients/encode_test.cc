// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/encode.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>

#include "proxy/clients/virtual_clock.h"

using namespace crane;
using namespace crane::proxy;

TEST_CASE("an address is seen by servers as IPv4 or IPv6, v4-mapped ones as IPv4", "[encode]") {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(8080);
  inet_pton(AF_INET, "192.0.2.7", &four.sin_addr);
  REQUIRE(text(virtual_address(reinterpret_cast<sockaddr*>(&four), sizeof four)) ==
          "192.0.2.7:8080");

  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(443);
  inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
  REQUIRE(text(virtual_address(reinterpret_cast<sockaddr*>(&six), sizeof six)) ==
          "[2001:db8::1]:443");
  inet_pton(AF_INET6, "::ffff:198.51.100.3", &six.sin6_addr);
  const VirtualAddress mapped = virtual_address(reinterpret_cast<sockaddr*>(&six), sizeof six);
  REQUIRE(mapped.family == AF_INET);
  REQUIRE(text(mapped) == "198.51.100.3:443");

  sockaddr unix_socket{};
  unix_socket.sa_family = AF_UNIX;
  REQUIRE(text(virtual_address(&unix_socket, sizeof unix_socket)) == "0.0.0.0:0");
}

TEST_CASE("CONNECT names the server's own port, not the published one", "[encode]") {
  VirtualAddress local{};
  local.port = 8080;
  const ConnectBody body = connect_body(80, {}, local);
  REQUIRE(body.port == 80);
  REQUIRE(body.local.port == 80);
  ConnectBody read{};
  REQUIRE(read_body(bytes_of(body), read));
  REQUIRE(read.port == 80);
  REQUIRE_FALSE(read_body(bytes_of(body).first(10), read));
}

TEST_CASE("V1: virtual time goes on through a change of the leader and never back", "[clock]") {
  VirtualClock old_leader;
  const auto first = old_leader.next_stamp(1'000'000);
  old_leader.committed(first, 1'000'000);
  REQUIRE(old_leader.next_stamp(3'000'000) - first == 2'000'000);

  // A follower whose own clock shows another number sees two stamps, the second one late.
  VirtualClock follower;
  follower.committed(1'000'000, 50'000'000);
  follower.committed(3'000'000, 52'700'000);
  const auto taken_over = follower.next_stamp(60'000'000);
  REQUIRE(taken_over == 11'000'000);
  REQUIRE(follower.next_stamp(59'000'000) >= taken_over);
  follower.committed(20'000'000, 60'000'000);
  REQUIRE(follower.now(60'000'000) == 20'000'000);
  REQUIRE(follower.mono_at(20'000'000) == 60'000'000);
}
