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

TEST_CASE("the ports that a command line names are found") {
  const auto ports = [](const std::vector<std::string>& command) {
    std::vector<std::string> all;
    for (const NamedPort& one : named_ports(command)) {
      all.push_back(std::to_string(one.port) + " " + one.word);
    }
    return all;
  };
  using Texts = std::vector<std::string>;
  CHECK(ports({"redis-server", "--port", "6379"}) == Texts{"6379 --port 6379"});
  CHECK(ports({"memcached", "-p", "11211", "-m", "64"}) == Texts{"11211 -p 11211"});
  CHECK(ports({"memcached", "-p11211"}) == Texts{"11211 -p11211"});
  CHECK(ports({"postgres", "-c", "port=5433"}) == Texts{"5433 port=5433"});
  CHECK(ports({"mariadbd", "--port=3307"}) == Texts{"3307 --port=3307"});
  CHECK(ports({"s", "--listen=10.0.0.1:80"}) == Texts{"80 --listen=10.0.0.1:80"});
  CHECK(ports({"s", "[::1]:80", "tcp://0.0.0.0:81"}) ==
        Texts{"80 [::1]:80", "81 tcp://0.0.0.0:81"});
  CHECK(ports({"s", "--maxmemory", "9100", "9100", "--port", "x", "-p", "0", "a:9100"}).empty());
  CHECK(ports({"s", "--report", "9100", "--import=9100"}).empty());
  CHECK(ports({"s", "--admin_port", "9100", "--Listen", "9101"}).size() == 2);
  CHECK(ports({"port", "9100"}).empty());  // the program's name is no option
}

TEST_CASE("replicas do not answer HTTP at a port of the server") {
  const std::vector<std::string> command{"redis-server", "--port", "9102"};
  const auto text_of = [](const Outcome& outcome) {
    REQUIRE_FALSE(outcome);
    CHECK(status_of(outcome) == Status::kUsage);
    return outcome.error().text;
  };
  CHECK(check_http_apart("", 3, {}, command));
  CHECK(check_http_apart("9100", 2, {}, command));
  const std::string own = text_of(check_http_apart("9100", 3, {}, command));
  CHECK(own.find("127.0.0.1:9102") != std::string::npos);
  CHECK(own.find("--port 9102") != std::string::npos);
  CHECK(own.find("replica 2") != std::string::npos);
  const Ports elsewhere{{8080, 9102}};
  CHECK(check_http_apart("9100", 3, elsewhere, command));
  const std::string published = text_of(check_http_apart("9100", 3, {{9101, 80}}, command));
  CHECK(published.find("--publish 9101:80") != std::string::npos);
  CHECK(check_http_apart("9100", 3, {{9101, 80, "10.0.0.1"}}, command));
  CHECK_FALSE(check_http_apart("0.0.0.0:9100", 3, {{9101, 80, "10.0.0.1"}}, command));
  CHECK_FALSE(check_http_apart("10.0.0.1:9100", 3, {{9101, 80, "10.0.0.1"}}, command));
  CHECK_FALSE(check_http_apart("9100", 3, {{9101, 80, "0.0.0.0"}}, command));
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
  REQUIRE(parse_group_file(head + "listen = \"10.0.0.1:9100\"\nopen = true\n", "f", file));
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
