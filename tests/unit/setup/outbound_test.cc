// SPDX-License-Identifier: Apache-2.0
// GOAL    Each word of --outbound and --resolver has one meaning.
// METHOD  Words as users write them, including wrong ones.
// CHECKS  Addresses, refusals.
#include "runtime/setup/outbound.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>

using namespace crane::setup;

TEST_CASE("outbound: any, none, or addresses with ports", "[setup]") {
  CHECK(parse_outbound("any")->any);
  const auto none = parse_outbound("none");
  REQUIRE(none);
  CHECK((!none->any && none->only.empty()));
  const auto some = parse_outbound("10.0.0.1:80,[2001:db8::1]:443");
  REQUIRE(some);
  CHECK_FALSE(some->any);
  REQUIRE(some->only.size() == 2);
  CHECK((some->only[0].family == AF_INET && some->only[0].port == 80));
  CHECK((some->only[0].ip[0] == 10 && some->only[0].ip[3] == 1));
  CHECK((some->only[1].family == AF_INET6 && some->only[1].port == 443));
  for (const char* wrong : {"", ",", "all", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536",
                            "example.com:80", "::1:80", "[::1]", "10.0.0.1:80 "}) {
    CAPTURE(wrong);
    CHECK(status_of(check_outbound(wrong)) == Status::kUsage);
  }
}

TEST_CASE("outbound: only the listed destinations are allowed", "[setup]") {
  const auto policy = parse_outbound("127.0.0.1:80");
  REQUIRE(policy);
  crane::VirtualAddress to = policy->only.at(0);
  CHECK(policy->allows(to));
  ++to.ip[3];
  CHECK_FALSE(policy->allows(to));
  --to.ip[3];
  ++to.port;
  CHECK_FALSE(policy->allows(to));
  CHECK(parse_outbound("any")->allows(to));
  CHECK_FALSE(parse_outbound("none")->allows(to));
}

TEST_CASE("resolver: an address, with or without a port, or none", "[setup]") {
  CHECK(parse_resolver("")->family == 0);
  CHECK((parse_resolver("10.0.0.1")->family == AF_INET && parse_resolver("10.0.0.1")->port == 53));
  CHECK(parse_resolver("10.0.0.1:5353")->port == 5353);
  CHECK((parse_resolver("[::1]")->family == AF_INET6 && parse_resolver("[::1]")->ip[15] == 1));
  CHECK(parse_resolver("[::1]:54")->port == 54);
  for (const char* wrong : {"::1", "a.example", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1,10.0.0.2"}) {
    CAPTURE(wrong);
    CHECK(status_of(check_resolver(wrong)) == Status::kUsage);
  }
}
