// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "runtime/setup/address.h"
#include "runtime/setup/http.h"

namespace crane::setup {

TEST_CASE("an address for HTTP is a port of this machine, or an address with a port") {
  CHECK(http_of_replica("9100", 0) == "127.0.0.1:9100");
  CHECK(http_of_replica("9100", 2) == "127.0.0.1:9102");
  CHECK(http_of_replica("0.0.0.0:9100", 1) == "0.0.0.0:9101");
  CHECK(http_of_replica("[::1]:9100", 1) == "[::1]:9101");
  CHECK(http_of_replica("", 1).empty());
  for (const char* wrong : {"0", "70000", "host:9100", ":9100", "9100 ", "::1:9100"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_http(wrong));
    CHECK_FALSE(check_http(wrong, 1));
  }
}

TEST_CASE("each replica on a machine needs a port") {
  CHECK(check_http("65533", 3));
  const Outcome wrong = check_http("65534", 3);
  CHECK(wrong.error().exit_status == static_cast<int>(Status::kUsage));
}

TEST_CASE("pages of hosts are at the addresses for clients") {
  GroupFile f;
  f.http = "0.0.0.0:9100";
  f.replicas = {{"10.0.0.1", 7100, "198.51.100.1"},
                {"10.0.0.2", 7100, "fd00::2"},
                {"10.0.0.3", 7100, "198.51.100.3"}};
  f.replicas[2].http = "9200";
  CHECK(http_pages_of(f) ==
        std::vector<std::string>{"198.51.100.1:9100", "[fd00::2]:9100", "127.0.0.1:9200"});
  CHECK(http_listen_of(f, f.replicas[0]) == "0.0.0.0:9100");
  f.http.clear();
  CHECK(http_pages_of(f) == std::vector<std::string>{"", "", "127.0.0.1:9200"});
}

TEST_CASE("a group file sets the HTTP address") {
  const std::string head =
      "[group]\nname = \"g\"\nsecret_file = \"/s\"\n[[replica]]\naddress = \"10.0.0.1\"\nport = "
      "1\nhttp = \"9200\"\n[server]\ncommand = [\"x\"]\n[http]\n";
  GroupFile file;
  REQUIRE(parse_group_file(head + "listen = \"10.0.0.1:9100\"\n", "f", file));
  CHECK(file.http == "10.0.0.1:9100");
  CHECK(file.replicas[0].http == "9200");
  GroupFile again;
  REQUIRE(parse_group_file(to_toml(file), "f", again));
  CHECK(again.http == file.http);
  CHECK(again.replicas[0].http == "9200");
  GroupFile wrong;
  const Outcome refused = parse_group_file(head + "listen = \"everywhere\"\n", "f", wrong);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text.find("[http] listen is \"everywhere\"") != std::string::npos);
}

}  // namespace crane::setup
