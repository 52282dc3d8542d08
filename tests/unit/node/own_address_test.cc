// SPDX-License-Identifier: Apache-2.0
// GOAL    Crane never removes an address that the host itself has.
// METHOD  A real interface in a network namespace.
// CHECKS  The owner of an address; taking and releasing an address; removing one that a killed
//         leader left.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>

#include "dmt/base/ipv4_prefix.h"
#include "proxy/clients/virtual_address.h"
#include "runtime/setup/host_address.h"
#include "tests/unit/clients/namespace.h"

using namespace crane;
using Address = node::VirtualAddress;

namespace {

constexpr const char* kAddress = "10.9.9.9/24";

void what_the_host_has_stays() {
  constexpr const char* kHas = "ip -o addr show dev here | grep -q 'inet 10.9.9.9/24'";
  const std::uint32_t number = parse_ipv4_prefix(kAddress)->number;
  REQUIRE(std::system("ip addr add 10.9.9.9/24 dev here") == 0);
  CHECK(setup::owner_of_address(number) == setup::AddressOwner::kHost);
  CHECK_FALSE(setup::check_virtual_ip(kAddress).ok());
  {
    Address host;
    REQUIRE(host.open(kAddress, "here").ok());
    const Outcome taken = host.take(7);
    REQUIRE_FALSE(taken.ok());
    CHECK(taken.error().detail == EEXIST);
    host.give_up();
  }
  CHECK(std::system(kHas) == 0);
  REQUIRE(std::system("ip addr del 10.9.9.9/24 dev here") == 0);
  CHECK(setup::owner_of_address(number) == setup::AddressOwner::kNone);
  Address leader, next;
  REQUIRE(leader.open(kAddress, "here").ok());
  REQUIRE(leader.take(8).ok());
  REQUIRE(leader.take(9).ok());  // it continues to lead
  CHECK(setup::owner_of_address(number) == setup::AddressOwner::kCrane);
  CHECK(setup::check_virtual_ip(kAddress).ok());
  REQUIRE(next.open(kAddress, "here", true).ok());  // as if the other leader had been killed
  CHECK(std::system(kHas) != 0);
}

}  // namespace

TEST_CASE("only an address that Crane has added is ever removed", "[moved]") {
  bool made = false;
  const bool entered = proxy::in_namespace([&] {
    made = std::system(
               "ip link add dev here type veth peer name there && "
               "ip link set dev here up") == 0;
    if (made) what_the_host_has_stays();
  });
  if (!entered || !made) WARN("not tested, it needs root and iproute2");
}
