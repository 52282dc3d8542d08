// SPDX-License-Identifier: Apache-2.0
// The sentences of crane-ctl that answer one question.
#include "runtime/launcher/ctl/plain_answers.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/launcher/known_group.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

// Three voters, of which the first `here` run on this host.
Json summary(int here, Json may_lose) {
  Json s{{"group", "shop"},
         {"may_lose", std::move(may_lose)},
         {"replicas", Json::array()},
         {"members", Json::array()}};
  for (int i = 0; i < 3; ++i) {
    s["replicas"].push_back({{"replica", i}, {"state", i < here ? "ok" : "on another host"}});
    s["members"].push_back({{"replica", i}, {"member", "voter"}});
  }
  return s;
}

Json row(const char* role, std::uint64_t lag_ms, double node, Json server) {
  return {{"group", "shop"},
          {"role", role},
          {"lag_ms", lag_ms},
          {"node_cpu_percent", node},
          {"server_cpu_percent", std::move(server)}};
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("status: a host may be rebooted if the group may lose its replicas") {
  CHECK(has(reboot_text(summary(1, 1)), "host: yes: 1 of 3 replicas run on it"));
  CHECK(has(reboot_text(summary(1, 1)), "crane-ctl replica drain 0 shop"));
  CHECK(has(reboot_text(summary(1, 0)), "host: no: 1 of 3 replicas run on it, and the group may"));
  CHECK(has(reboot_text(summary(1, nullptr)), "host: no: 1 of 3 replicas run on it, and no"));
  CHECK(has(reboot_text(summary(2, 1)), "host: no: 2 of 3 replicas run on it, so the group stops"));
  CHECK(has(reboot_text(summary(3, 1)), "host: no: 3 of 3"));
  CHECK(has(reboot_text(summary(0, 0)), "host: yes: no replica"));
  Json far = summary(2, 0);
  for (Json& row : far["replicas"]) row["over_link"] = true;
  CHECK(has(reboot_text(far), "host: yes: no replica"));
  Json learner = summary(1, 1);
  learner["members"][0]["member"] = "learner";
  CHECK(has(reboot_text(learner), "host: yes: no replica"));
  CHECK(reboot_text({{"group", "shop"}}).empty());
}

TEST_CASE("top: a slow group has a cause") {
  const Json idle = row("follower", 2, 1.0, 3.0);
  CHECK(has(slowness_text({row("leader", 0, 1.5, 89.9), idle, idle}), "shop: not slow: "));
  CHECK(has(slowness_text({row("leader", 0, 1.5, 89.9), idle, idle}), "more than 89.9 %"));
  CHECK(has(slowness_text({row("leader", 0, 1.5, 97.0), idle, idle}), "SERVER CPU 97 %"));
  CHECK(has(slowness_text({row("leader", 0, 92.0, 5.0), idle, idle}), "NODE CPU 92 %"));
  CHECK(has(slowness_text({row("leader", 0, 1.0, nullptr)}), "not slow"));
  const Json late = row("follower", 240, 1.0, 99.0), leader = row("leader", 0, 1.0, 5.0);
  CHECK(has(slowness_text({leader, late, idle}), "not slow"));  // one late follower slows no client
  CHECK(has(slowness_text({leader, late, late}), "which are 240 ms late"));
  CHECK(slowness_text(Json::array()).empty());
}

TEST_CASE("list: what outlives a group") {
  const std::string home = "/var/tmp/crane-lasts-" + std::to_string(getpid());
  std::filesystem::create_directories(home);
  CHECK(lasting_of(home, "memory") == "nothing");
  CHECK(lasting_of(home, "disk") == "log");
  KnownGroup known;
  known.name = "shop";
  known.log_id = "17";
  known.durability = "disk";
  known.replicas = known.places = 3;
  known.data = {"/srv/db"};
  known.machines = {1};
  known.program = {"server"};
  known.working_directory = "/";
  std::ofstream(home + "/" + kKnownGroupName) << text_of(known);
  CHECK(lasting_of(home, "") == "log, /srv/db");
  std::filesystem::remove_all(home);
}

}  // namespace crane::launcher
