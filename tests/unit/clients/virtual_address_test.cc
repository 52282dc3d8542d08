// SPDX-License-Identifier: Apache-2.0
// Two hosts at the ends of a cable, which both have the address for a while.
#include "proxy/clients/virtual_address.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/unit/clients/loopback_listener.h"
#include "tests/unit/clients/namespace.h"

using namespace crane;
using Address = node::VirtualAddress;
using ArpSighting = Address::ArpSighting;

namespace {

constexpr const char* kAddress = "10.9.9.9/24";

bool hears(Address& host, ArpSighting what) {
  return proxy::turned_until([&] { return host.read_arp_packets() == what; }, [] {});
}

void the_later_leader_keeps_it() {
  Address first, second;
  REQUIRE(first.open(kAddress, "here").ok());
  REQUIRE(second.open(kAddress, "there").ok());
  REQUIRE(first.take(7).ok());
  REQUIRE(second.take(8).ok());
  CHECK(hears(first, ArpSighting::kReplaced));
  // The first host does not know yet.
  REQUIRE(first.announce().ok());
  CHECK(hears(second, ArpSighting::kAnother));
  REQUIRE(second.announce().ok());
  CHECK(hears(first, ArpSighting::kReplaced));
  CHECK(second.read_arp_packets() == ArpSighting::kNothing);  // a host ignores its own announcement
  // The first host leads again.
  REQUIRE(first.take(9).ok());
  CHECK(hears(second, ArpSighting::kReplaced));
}

}  // namespace

TEST_CASE("a host with a virtual address learns of another host that has it", "[moved]") {
  bool cable = false;
  const bool made = proxy::in_namespace([&] {
    cable = std::system(
                "ip link add dev here type veth peer name there && "
                "ip link set dev here up && ip link set dev there up") == 0;
    // The kernel notices the other end a moment later, and drops frames until then.
    constexpr const char* kUp =
        "ip -o link show dev here | grep -q 'state UP' && "
        "ip -o link show dev there | grep -q 'state UP'";
    cable = cable && proxy::turned_until([] { return std::system(kUp) == 0; }, [] {});
    if (cable) the_later_leader_keeps_it();
  });
  if (!made || !cable) WARN("not tested, it needs root and iproute2");
}
