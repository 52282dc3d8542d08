// SPDX-License-Identifier: Apache-2.0
// GOAL    Each word of --hosts has one meaning; lists that cannot form a group are refused.
// METHOD  Lists as users write them, including wrong ones.
// CHECKS  Names, addresses, ports; the status of each refusal.
#include "runtime/setup/host_list.h"

#include <catch2/catch.hpp>

using namespace crane::setup;
using crane::Outcome;

namespace {

Status status_after(const std::string& text) {
  std::vector<HostWord> hosts;
  const Outcome parsed = parse_hosts(text, hosts);
  return status_of(parsed.ok() ? resolve_hosts(hosts) : parsed);
}

}  // namespace

TEST_CASE("hosts are names, with or without address and port", "[hosts]") {
  std::vector<HostWord> hosts;
  REQUIRE(parse_hosts("h1,root@h2=10.0.0.2,h3=10.0.0.3:7200,root@10.0.0.4,h5=[fd00::5]:7300", hosts)
              .ok());
  REQUIRE(hosts.size() == 5);
  CHECK((hosts[0].name == "h1" && hosts[0].address.empty() && hosts[0].port == kReplicaPort));
  CHECK((hosts[1].name == "root@h2" && hosts[1].address == "10.0.0.2"));
  CHECK((hosts[2].address == "10.0.0.3" && hosts[2].port == 7200));
  CHECK((hosts[3].name == "root@10.0.0.4" && hosts[3].address == "10.0.0.4"));
  CHECK((hosts[4].address == "fd00::5" && hosts[4].port == 7300));
}

TEST_CASE("without a port an IPv6 address needs no brackets", "[hosts]") {
  std::vector<HostWord> hosts;
  REQUIRE(parse_hosts("a=fd00::1,b=fd00::2,c=fd00::3", hosts).ok());
  CHECK((hosts[2].address == "fd00::3" && hosts[2].port == kReplicaPort));
}

TEST_CASE("lists that cannot form a group are refused", "[hosts]") {
  CHECK(status_after("a=10.0.0.1,b=10.0.0.2,c=10.0.0.3") == Status::kOk);
  for (const char* few : {"a", "a,b", "a,b,c,d", "a,b,c,d,e,f,g,h,i,j,k"}) {
    CHECK(status_after(few) == Status::kReplicas);
  }
  for (const char* wrong :
       {"", "a,,b", "a,b,", "-oProxyCommand=x,b,c", "a b,c,d", "a;b,c,d", "a,b,a=10.0.0.1",
        "a=,b,c", "a=name,b,c", "a=10.0.0.1:0,b,c", "a=10.0.0.1:65536,b,c", "a=10.0.0.1:x,b,c",
        "a=[10.0.0.1,b,c", "a=10.0.0.1,b=10.0.0.1,c=10.0.0.3"}) {
    CAPTURE(wrong);
    CHECK(status_after(wrong) == Status::kUsage);
  }
}
