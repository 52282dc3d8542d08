// SPDX-License-Identifier: Apache-2.0
// The file and replica that the instance name of a unit denotes.
#include "runtime/setup/instance.h"

#include <catch2/catch.hpp>
#include <string>

using namespace crane;
using namespace crane::setup;

namespace {

GroupFile replicas_at(const std::vector<std::string>& addresses) {
  GroupFile file;
  for (const auto& address : addresses) file.replicas.emplace_back().address = address;
  return file;
}

}  // namespace

TEST_CASE("a unit's instance name names the file, and the replica if necessary", "[instance]") {
  Instance instance;
  REQUIRE(parse_instance("shop", "/etc/crane", instance).ok());
  CHECK(instance.path == "/etc/crane/shop.toml");
  CHECK_FALSE(instance.replica);
  REQUIRE(parse_instance("shop:2", "/etc/crane", instance).ok());
  CHECK(instance.path == "/etc/crane/shop.toml");
  CHECK(instance.replica == 2);
  for (const char* word : {"", ":1", "../shop", "shop:", "shop:x", "shop:-1", "shop:1x"}) {
    CAPTURE(word);
    CHECK(status_of(parse_instance(word, "/etc/crane", instance)) == Status::kUsage);
  }
}

TEST_CASE("a host is the replica whose address it has", "[instance]") {
  int replica = -1;
  REQUIRE(
      own_replica("f", replicas_at({"198.51.100.1", "127.0.0.9", "2001:db8::1"}), replica).ok());
  CHECK(replica == 1);
  const auto none = own_replica("f", replicas_at({"198.51.100.1", "198.51.100.2"}), replica);
  CHECK(status_of(none) == Status::kGroupFile);
  CHECK(none.error().text.find("no replica's address") != std::string::npos);
  const auto both = own_replica("f", replicas_at({"127.0.0.1", "127.0.0.2"}), replica);
  CHECK(status_of(both) == Status::kGroupFile);
  CHECK(both.error().text.find("replicas 0, 1") != std::string::npos);
}
