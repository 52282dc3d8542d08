// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/encode.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>

using namespace crane;
using namespace crane::proxy;

TEST_CASE("servers see an address as IPv4 or IPv6, and a v4-mapped address as IPv4", "[encode]") {
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

TEST_CASE("CONNECT contains the server's own port, not the published one", "[encode]") {
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
