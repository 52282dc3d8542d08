// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/event_log.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/unit/node/three_voters.h"

namespace crane::node {
namespace {

NodeStatus at_rest() {
  NodeStatus s = status_of_three(0, "follower", 1);
  s.view = 4;
  s.server_pid = 100;
  return s;
}

NodeStatus leader() {
  NodeStatus s = status_of_three(0, "leader", 0);
  s.view = 5;
  s.server_pid = 100;
  s.readiness.takes_clients = true;
  return s;
}

std::string logged(const NodeStatus& before, const NodeStatus& now) {
  std::string all;
  for (const Event& e : events_between(before, now)) all += e.name + ": " + e.text + "\n";
  return all;
}

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("without a change there is no event") { CHECK(logged(at_rest(), at_rest()).empty()); }

TEST_CASE("a new leader reports its clients, a follower reports the leader") {
  NodeStatus now = leader();
  now.last_adopted = 3;
  CHECK(logged(at_rest(), now) == "leads: in view 5; 3 connections were kept, 0 were reset\n");
  CHECK(logged(now, at_rest()) == "follows: replica 1 in view 4\n");
  NodeStatus elected = leader();
  elected.readiness.takes_clients = false;  // its server does not know yet
  CHECK(logged(at_rest(), elected).empty());
}

TEST_CASE("each change of the server, the quorum and checkpoints is reported once") {
  NodeStatus now = at_rest();
  now.server_pid = 101;
  now.no_quorum = "no quorum: 1 of 3";
  now.not_serving = "it waits";
  now.divergences = 1;
  now.alarm = "replica 2 differs";
  now.checkpoint.taken = 1;
  now.checkpoint.last = Index{7};
  now.checkpoint.held_ns = 12'340'000;
  now.checkpoint.failed = 1;
  now.checkpoint.gave_up = Index{6};
  now.checkpoint.why = "no room";
  CHECK(logged(at_rest(), now) ==
        "no quorum: no quorum: 1 of 3\n"
        "server runs: pid 101\n"
        "not serving: it waits\n"
        "differs: replica 2 differs\n"
        "checkpoint: at log index 7; the server was held for 12.3 ms\n"
        "no checkpoint: at log index 6: no room\n");
  CHECK(logged(now, now).empty());
  NodeStatus later = now;
  later.no_quorum = later.not_serving = "";
  CHECK(logged(now, later) ==
        "quorum: a majority answers and has a leader again\n"
        "serves: again; before: it waits\n");
}

TEST_CASE("the leader reports changes of its members") {
  NodeStatus now = leader();
  now.log.members[2].connected = false;
  CHECK(logged(leader(), now) == "replica is gone: replica 2\n");
  CHECK(logged(now, leader()) == "replica is there: replica 2\n");
  now = leader();
  now.log.members.pop_back();
  CHECK(logged(leader(), now) == "member: replica 2 was removed\n");
  CHECK(logged(now, leader()) == "member: replica 2 was added (voter)\n");
}

TEST_CASE("an event file is bounded, and the previous one is kept") {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("crane-events-" + std::to_string(::getpid()) + ".jsonl");
  {
    EventLog log(path, 2, 400);
    NodeStatus s = at_rest();
    s.pid = 77;
    log.observe(s, 1'000);
    log.observe(s, 2'000);
    auto lines = lines_of(path);
    REQUIRE(lines.size() == 3);
    CHECK(
        lines[0] ==
        nlohmann::json{{"unix_ms", 1000}, {"replica", 2}, {"event", "begins"}, {"text", "pid 77"}});
    CHECK(lines[1]["event"] == "follows");
    CHECK(lines[2]["event"] == "server runs");
    for (int i = 0; i < 20; ++i) log.note({"n", std::to_string(i)}, 3'000 + i);
    CHECK(std::filesystem::file_size(path) <= 400);
    CHECK(std::filesystem::file_size(path + ".1") <= 400);
    CHECK(lines_of(path).back()["text"] == "19");
  }
  {
    EventLog again(path, 2, 400);
    const std::size_t before = lines_of(path).size();
    again.note({"n", "20"}, 4'000);
    CHECK(lines_of(path).size() <= before + 1);
    CHECK(lines_of(path).back()["text"] == "20");
  }
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".1");
}

TEST_CASE("the newest events are whole lines, also of the file before") {
  const std::string path = "/tmp/crane-newest-" + std::to_string(::getpid());
  const auto put = [](const std::string& file, std::initializer_list<const char*> lines) {
    std::ofstream out(file);
    for (const char* line : lines) out << line << "\n";
  };
  using Lines = std::vector<std::string>;
  CHECK(newest_events(path, 9, 100).lines.empty());
  CHECK(newest_events(path, 9, 100).all);
  put(path, {"third", "fourth"});
  put(path + ".1", {"first", "second"});
  CHECK(newest_events(path, 9, 100).lines == Lines{"first", "second", "third", "fourth"});
  CHECK(newest_events(path, 4, 100).all);
  CHECK(newest_events(path, 3, 100).lines == Lines{"second", "third", "fourth"});
  CHECK_FALSE(newest_events(path, 3, 100).all);
  CHECK(newest_events(path, 9, 22).lines == Lines{"second", "third", "fourth"});
  CHECK_FALSE(newest_events(path, 9, 22).all);
  CHECK(newest_events(path, 9, 8).lines == Lines{"fourth"});
  CHECK(newest_events(path, 9, 3).lines.empty());
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".1");
}

}  // namespace crane::node
