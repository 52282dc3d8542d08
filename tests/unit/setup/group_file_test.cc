// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/group_file.h"

#include <catch2/catch.hpp>

using namespace crane::setup;
using crane::Outcome;

namespace {

const std::string kWhole = R"(
[group]
name = "shop"
secret_file = "/etc/crane/secret"
fabric = "verbs"
device = "rxe0"
fence = "flags"
fence_flags_devices = ["mlx5", "rxe0"]
huge_pages = "require"
durability = "disk"
ring_mb = 64
lag_ms = 30
restart_checkpoints = true
restart_every_s = 900
state_dir = "/var/lib/crane"
[[replica]]
address = "10.0.0.1"
port = 7100
clients = "192.0.2.1"
cpu = 1
cpus = "1-2,0,7"
numa_node = 1
[[replica]]
address = "10.0.0.2"
port = 7101
[[replica]]
address = "fd00::3"
port = 7102
[server]
command = ["redis-server", "--port", "7000"]
profile = "redis-server"
mode = "parallel"
admission = "classic"
quantum = 7
n_clock = 50
w_timeout_us = 20
spins = true
outbound = "10.0.0.1:80,[::1]:443"
resolver = "[::1]:5353"
detach = ["fsync"]
soft_barriers = ["page:8:5000"]
env = { A = "1", B = "two words" }
container = false
binds = ["/srv:ro", "/a:/b:ro"]
shared_binds = ["/c"]
working_directory = "/srv"
record = "/var/tmp/record"
[clients]
on_follower = "refuse"
listen = "any"
publish = ["8080:80", "443"]
virtual_ip = "192.0.2.9/24"
interface = "eth0"
[hooks]
role_change = "/usr/local/bin/moved"
)";

const std::string kLeast =
    "[group]\nname = \"a\"\nsecret_file = \"/s\"\n"
    "[[replica]]\naddress = \"127.0.0.1\"\nport = 1\n"
    "[server]\ncommand = [\"x\"]\n";

void check_whole(const GroupFile& f) {
  CHECK(f.name == "shop");
  CHECK(f.fabric == "verbs");
  CHECK(f.device == "rxe0");
  CHECK(f.fence == "flags");
  CHECK(f.huge_pages == "require");
  CHECK(f.fence_flags_devices == std::vector<std::string>{"mlx5", "rxe0"});
  CHECK(f.durability == "disk");
  CHECK(f.state_dir == "/var/lib/crane");
  CHECK(f.ring_mb == 64);
  CHECK(f.lag_ms == 30);
  CHECK(f.restart_checkpoints);
  CHECK(f.restart_every_s == 900);
  REQUIRE(f.replicas.size() == 3);
  CHECK(f.replicas[0].clients == "192.0.2.1");
  CHECK(f.replicas[0].cpu == 1);
  CHECK(f.replicas[0].cpus == std::vector<int>{0, 1, 2, 7});
  CHECK(f.replicas[0].numa_node == 1);
  CHECK(f.replicas[1].clients == "10.0.0.2");  // its address
  CHECK(f.replicas[1].port == 7101);
  CHECK(f.replicas[2].address == "fd00::3");
  CHECK(f.command == std::vector<std::string>{"redis-server", "--port", "7000"});
  CHECK(f.profile == "redis-server");
  CHECK(f.mode == "parallel");
  CHECK(f.admission == crane::dmt::Admission::kClassic);
  CHECK(f.quantum == 7);
  CHECK(f.n_clock == 50);
  CHECK(f.w_timeout_us == 20);
  CHECK(f.spins);
  CHECK(f.outbound == "10.0.0.1:80,[::1]:443");
  CHECK(f.resolver == "[::1]:5353");
  CHECK(f.detach == std::vector<std::string>{"fsync"});
  CHECK(f.soft_barriers == std::vector<std::string>{"page:8:5000"});
  CHECK(f.env == std::vector<std::string>{"A=1", "B=two words"});
  CHECK_FALSE(f.container);
  CHECK(f.binds == std::vector<std::string>{"/srv:ro", "/a:/b:ro"});
  CHECK(f.shared_binds == std::vector<std::string>{"/c"});
  CHECK(f.working_directory == "/srv");
  CHECK(f.record == "/var/tmp/record");
  CHECK_FALSE(f.forward);
  CHECK(f.listen_any);
  CHECK(f.publish == Ports{{8080, 80}, {443, 443}});
  CHECK(f.virtual_ip == "192.0.2.9/24");
  CHECK(f.interface == "eth0");
  CHECK(f.role_change == "/usr/local/bin/moved");
}

}  // namespace

TEST_CASE("group file: every key is read, and written so that it can be read back", "[setup]") {
  GroupFile f;
  const Outcome p = parse_group_file(kWhole, "g.toml", f);
  INFO((p.ok() ? "" : p.error().text));
  REQUIRE(p.ok());
  check_whole(f);
  GroupFile again;
  const std::string text = to_toml(f);
  INFO(text);
  REQUIRE(parse_group_file(text, "again", again).ok());
  check_whole(again);
}

TEST_CASE("group file: the required keys are enough, and the others have defaults", "[setup]") {
  GroupFile f;
  REQUIRE(parse_group_file(kLeast, "g.toml", f).ok());
  CHECK(f.fabric == "tcp");
  CHECK(f.fence == "deregister");
  CHECK(f.durability == "memory");
  CHECK(f.mode == "serial");
  CHECK(f.forward);
  CHECK(f.listen_any);
  CHECK(f.container);
  CHECK(f.virtual_ip.empty());
}

TEST_CASE("group file: listening can be restricted to the clients' addresses", "[setup]") {
  GroupFile f;
  const std::string text = std::string(kLeast) + "[clients]\nlisten = \"clients\"\n";
  REQUIRE(parse_group_file(text, "g.toml", f).ok());
  CHECK_FALSE(f.listen_any);
  GroupFile again;
  REQUIRE(parse_group_file(to_toml(f), "again", again).ok());
  CHECK_FALSE(again.listen_any);
}

TEST_CASE("group file: links of other replicas can be accepted at all addresses", "[setup]") {
  GroupFile f;
  REQUIRE(parse_group_file(kLeast, "g.toml", f).ok());
  CHECK_FALSE(f.links_listen_any);
  std::string text = kLeast;
  text.insert(text.find("[group]\n") + 8, "listen = \"any\"\n");
  GroupFile any;
  REQUIRE(parse_group_file(text, "g.toml", any).ok());
  CHECK(any.links_listen_any);
  GroupFile again;
  REQUIRE(parse_group_file(to_toml(any), "again", again).ok());
  CHECK(again.links_listen_any);
}

TEST_CASE("group file: a directory in its place is refused", "[setup]") {
  GroupFile f;
  const Outcome p = read_group_file("/", f);
  CHECK(status_of(p) == Status::kGroupFile);
  CHECK(p.error().text.find("/: Is a directory; ") != std::string::npos);
}

TEST_CASE("group file: mistakes are reported with their line", "[setup]") {
  struct Row {
    std::string from, to;  // a change of kWhole
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {"name = \"shop\"", "", {"[group]", "name", "missing"}},
      {"name = \"shop\"", "name = \"a/b\"", {"g.toml:3", "name"}},
      {"fabric =", "members = 2\nfabric =", {"odd number of voters"}},
      {"listen = \"any\"", "listen = \"clients\"", {"virtual_ip", "needs listen"}},
      {"192.0.2.9/24", "2001:db8::9/64", {"virtual_ip", "IPv4"}},
      {"fabric =", "members = 9\nfabric =", {"members", "more than the number of replicas"}},
      {"fabric =", "listen = \"any\"\nfabric =", {"g.toml:5", "listen", "fabric = \"tcp\""}},
      {"\"verbs\"", "\"carrier\"", {"g.toml:5", "fabric", "carrier", "tcp, verbs, shm"}},
      {"\"verbs\"", "\"tcp\"", {"g.toml:7", "fence", "only for RDMA", "leave it out"}},
      {"\"verbs\"\ndevice = \"rxe0\"\nfence = \"flags\"",
       "\"tcp\"",
       {"g.toml:7", "huge_pages", "only for RDMA", "leave it out"}},
      {"\"require\"", "true", {"g.toml:9", "huge_pages", "in quotes"}},
      {"\"require\"", "\"on\"", {"g.toml:9", "huge_pages", "auto, require, never"}},
      {"= \"flags\"", "= \"hope\"", {"g.toml:7", "fence", "deregister, reset, flags"}},
      {"[\"mlx5\", \"rxe0\"]", "[]", {"g.toml:7", "no device is named", "deregister"}},
      {"\"/etc/crane/secret\"", "\"secret\"", {"g.toml:4", "secret_file", "absolute"}},
      {"port = 7101", "port = 99999", {"[[replica]] 1", "port", "65535"}},
      {"\"10.0.0.2\"\nport = 7101",
       "\"10.0.0.1\"\nport = 7100",
       {"[[replica]] 1", "port is that of replica 0", "its own port"}},
      {"port = 7101", "", {"[[replica]] 1", "port", "missing"}},
      {"\"10.0.0.2\"", "\"host2\"", {"[[replica]] 1", "address", "IP"}},
      {"[[replica]]\naddress = \"fd00::3\"\nport = 7102\n", "", {"2 times", "odd"}},
      {"quantum = 7", "quantun = 7", {"[server]", "quantun", "not known", "did you mean quantum?"}},
      {"[hooks]", "[hook]", {"hook", "not known", "did you mean hooks?"}},
      {"quantum = 7", "nonsense = 7", {"nonsense", "not known; see GROUP_FILE.md"}},
      {"port = 7101", "prot = 7101", {"[[replica]] 1", "port", "missing", "correct prot"}},
      {"cpu = 1", "cpu = \"1\"", {"cpu"}},
      {"1-2,0,7", "", {"cpus", "0-3,8"}},
      {"1-2,0,7", "2-1", {"cpus", "2-1"}},
      {"1-2,0,7", "1,", {"cpus"}},
      {"1-2,0,7", "-1", {"cpus"}},
      {"1-2,0,7", "1 - 2", {"cpus"}},
      {"1-2,0,7", "0-1024", {"cpus"}},
      {"numa_node = 1", "numa_node = -1", {"numa_node", "0 to 1023"}},
      {"container = false", "container = \"no\"", {"container", "true"}},
      {"[\"redis-server\", \"--port\", \"7000\"]", "[]", {"command", "missing"}},
      {"[\"redis-server\", \"--port\", \"7000\"]", "[\"a\", 1]", {"command", "texts"}},
      {"\"192.0.2.9/24\"", "\"192.0.2.9\"", {"virtual_ip", "prefix"}},
      {"interface = \"eth0\"", "", {"virtual_ip and interface", "both"}},
      {"\"8080:80\"", "\"8080:\"", {"publish", "8080:80"}},
      {"\"/usr/local/bin/moved\"", "\"moved\"", {"role_change", "absolute"}},
      {"restart_checkpoints = true\n", "", {"restart_every_s", "restart_checkpoints = true"}},
      {"[\"/srv:ro\"", "[\"/srv\"", {"[server] binds", "/srv", "--data /srv", "--bind-shared"}},
      {"[server]", "[server", {"g.toml:"}},
  };
  for (const Row& row : rows) {
    std::string text = kWhole;
    const auto at = text.find(row.from);
    REQUIRE(at != std::string::npos);
    text.replace(at, row.from.size(), row.to);
    GroupFile f;
    const Outcome p = parse_group_file(text, "g.toml", f);
    CAPTURE(row.from, row.to, (p.ok() ? "" : p.error().text));
    CHECK(status_of(p) == Status::kGroupFile);
    for (const auto& word : row.words) CHECK(p.error().text.find(word) != std::string::npos);
    CHECK(p.error().text.find("; ") != std::string::npos);  // it contains the remedy
  }
}
