// SPDX-License-Identifier: Apache-2.0
// The table that crane-ctl makes from the nodes' answers.
#include "runtime/launcher/ctl/status_table.h"

#include <catch2/catch.hpp>

using namespace crane::launcher;
using Json = nlohmann::json;

namespace {

Json readiness(bool leads) {
  return {{"runs", true},      {"starts", false}, {"takes_clients", leads},
          {"recovers", false}, {"late", false},   {"needs_checkpoint", false},
          {"no_room", false},  {"lag_ms", 0},     {"why_not", nullptr}};
}

NodeAnswer node(const char* role, unsigned view, unsigned leader, unsigned commit,
                unsigned applied) {
  return {Reply::kAnswer,
          {{"role", role},
           {"view", view},
           {"leader", leader},
           {"last", commit},
           {"commit", commit},
           {"applied", applied},
           {"replicas", 3},
           {"server_pid", 1234},
           {"fabric", "shm"},
           {"durability", "memory"},
           {"readiness", readiness(std::string(role) == "leader")},
           {"peers", Json::array({{{"replica", 0}, {"applied", 90}}})}}};
}

}  // namespace

TEST_CASE("status: if all answer and one leads, all is well", "[ctl]") {
  const Json s = summarise("g", {{0, node("follower", 2, 1, 95, 90)},
                                 {1, node("leader", 2, 1, 100, 100)},
                                 {2, node("follower", 2, 1, 100, 99)}});
  CHECK(health_of(s) == Health::kWell);
  CHECK(s["leader"] == 1);
  CHECK(s["view"] == 2);
  CHECK(s["commit"] == 100);
  CHECK(s["replicas"][0]["lag_entries"] ==
        10);  // behind the group's commit index, not the replica's own
  CHECK(s["replicas"][2]["lag_entries"] == 1);
  const std::string table = table_of(s);
  INFO(table);
  CHECK(table.find("g: serving; ") == 0);  // the leader lists no members
  CHECK(table.find("\nwell, leader 1, view 2, commit 100, shm, memory\n") != std::string::npos);
  CHECK(table.find("DURABLE") == std::string::npos);  // no replica has one
  CHECK(std::count(table.begin(), table.end(), '\n') == 6);
}

TEST_CASE("status: the first line is a verdict", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 1, 0, 9, 9)},
                                    {1, node("follower", 1, 0, 9, 9)},
                                    {2, node("follower", 1, 0, 9, 9)}};
  const auto verdict = [&](int voters, int there) {
    Json members = Json::array();
    for (int i = 0; i < voters; ++i) {
      members.push_back({{"replica", i}, {"member", "voter"}, {"connected", i < there}});
    }
    answers[0].status["members"] = answers[0].status["peers"] = members;
    const std::string table = table_of(summarise("g", answers));
    return table.substr(0, table.find('\n'));
  };
  CHECK(verdict(3, 3) == "g: serving, 3 of 3, fault tolerant");
  CHECK(verdict(3, 2) ==
        "g: serving, 2 of 3: ONE MORE LOSS STOPS IT; replica 2 is not connected to the leader");
  for (int i : {3, 4}) answers[i] = node("follower", 1, 0, 9, 9);
  CHECK(verdict(5, 5) == "g: serving, 5 of 5, fault tolerant: 2 may be lost");
  CHECK(verdict(5, 4) ==
        "g: serving, 4 of 5, fault tolerant; replica 4 is not connected to the leader");
  for (int i : {3, 4}) answers.erase(i);
  CHECK(verdict(1, 1) == "g: serving, 1 of 1, NOT FAULT TOLERANT: its loss stops it");
  answers[0].status["readiness"]["why_not"] = "a thread waits for a mutex";
  CHECK(verdict(3, 3) == "g: NOT SERVING: its server makes no progress");
  answers[0].status["readiness"]["why_not"] = nullptr;
  answers[0].status["no_quorum"] = "no quorum: 1 of 3 replicas answer";
  CHECK(verdict(3, 1) == "g: NOT SERVING: no quorum");
  answers[0].reply = Reply::kAbsent;
  CHECK(verdict(3, 3) == "g: NOT SERVING: no leader");
}

TEST_CASE("status: a soft barrier point that no process has is reported", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 0, 0, 7, 7)}};
  answers[0].status["soft_barriers"] = Json::array({{{"function", "f"},
                                                     {"origin", "--soft-barrier"},
                                                     {"state", "not found"},
                                                     {"count", 8},
                                                     {"timeout_us", 5000},
                                                     {"arrivals", 0},
                                                     {"rounds", 0}}});
  const std::string table = table_of(summarise("g", answers));
  INFO(table);
  CHECK(table.find(
            "\nsoft barrier f (--soft-barrier): not found; 8 threads or 5000 us; 0 arrivals in 0 "
            "rounds\n") != std::string::npos);
}

TEST_CASE("status: checkpoints: the newest, one given up since then, and which replica recovered",
          "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 1, 0, 900, 900)},
                                    {1, node("follower", 1, 0, 900, 900)},
                                    {2, node("follower", 1, 0, 900, 900)}};
  const auto lines = [&] {
    const std::string text = table_of(summarise("g", answers));
    const std::size_t at = text.find("checkpoint");
    return at == std::string::npos ? "" : text.substr(text.rfind('\n', at) + 1);
  };
  for (auto& [replica, answer] : answers) {
    answer.status["checkpoint"] = {{"last", 0},     {"gave_up", 0}, {"held_us", 0},
                                   {"why_not", ""}, {"taken", 0},   {"restored_at", 0}};
  }
  CHECK(lines().empty());  // nothing to report
  answers[1].status["checkpoint"].update({{"last", 300}, {"held_us", 100'000}});
  answers[2].status["checkpoint"].update({{"last", 483}, {"held_us", 240'999}});
  CHECK(lines() == "checkpoint: entry 483 by replica 2, held for 240 ms\n");
  answers[1].status["checkpoint"].update({{"gave_up", 400}, {"why_not", "long ago"}});
  CHECK(lines() == "checkpoint: entry 483 by replica 2, held for 240 ms\n");
  answers[1].status["checkpoint"].update({{"gave_up", 500}, {"why_not", "it has an io_uring"}});
  CHECK(lines() ==
        "checkpoint: entry 483 by replica 2, held for 240 ms; replica 1 gave up the one at entry "
        "500: it has an io_uring\n");
  answers[1].status["checkpoint"]["last"] = 600;
  CHECK(lines() == "checkpoint: entry 600 by replica 1, held for 100 ms\n");
  answers[2].status["checkpoint"]["last"] = 0;
  answers[1].status["checkpoint"].update({{"last", 0}, {"restored_at", 483}});
  CHECK(lines() ==
        "checkpoint: replica 1 gave up the one at entry 500: it has an io_uring\n"
        "replica 1 recovered from the checkpoint at entry 483\n");
  answers[1].status["server_pid"] = nullptr;
  CHECK(lines().ends_with("replica 1 begins at the checkpoint at entry 483\n"));
  answers[0].status["checkpoint"] = 7;
  answers[1].status["checkpoint"] = {{"last", "x"}, {"gave_up", 9}, {"why_not", {1}}};
  answers[2].status["checkpoint"] = nullptr;
  CHECK(lines() == "checkpoint: replica 1 gave up the one at entry 9: [1]\n");
}

TEST_CASE("status: the recovery method comes from a replica that has tried it", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 1, 0, 900, 900)},
                                    {1, node("follower", 1, 0, 900, 900)},
                                    {2, node("follower", 1, 0, 900, 900)}};
  const auto lines = [&] {
    const std::string text = table_of(summarise("g", answers));
    const std::size_t at = text.find("recovery");
    return at == std::string::npos ? "" : text.substr(at);
  };
  CHECK(lines().empty());
  for (auto& [replica, answer] : answers) {
    answer.status["recovery"] = {{"tier", "replay"},
                                 {"entry", 0},
                                 {"why", "no checkpoint was taken yet"},
                                 {"refused", ""},
                                 {"came_back_by", ""}};
  }
  CHECK(lines() == "recovery: replay, all inputs again: no checkpoint was taken yet\n");
  answers[1].status["recovery"].update({{"why", "an io_uring"}, {"refused", "an io_uring"}});
  answers[2].status["recovery"].update({{"came_back_by", "replay"}});
  CHECK(lines() ==
        "recovery: replay, all inputs again: an io_uring\n"
        "replica 2 recovered by running all inputs again\n");
  answers[2].status["recovery"].update(
      {{"tier", "restart"}, {"entry", 80}, {"why", "an io_uring"}});
  answers[2].status["checkpoint"] = {{"restored_at", 80}};
  answers[2].status["recovery"]["came_back_by"] = "restart";
  CHECK(lines() == "recovery: restart, a new server on the files as at entry 80: an io_uring\n");
  CHECK(table_of(summarise("g", answers))
            .find("replica 2 recovered from the checkpoint at entry 80, with a new server on its "
                  "files\n") != std::string::npos);
  answers[0].status["recovery"].update({{"tier", "criu"}, {"entry", 90}, {"why", ""}});
  CHECK(lines() == "recovery: criu, the server as at entry 90\n");
  answers[0].status["recovery"] = 7;
  answers[1].status["recovery"] = nullptr;
  answers[2].status["recovery"] = {{"tier", 7}, {"entry", "x"}, {"came_back_by", {1}}};
  CHECK(lines().empty());
}

TEST_CASE("status: verification, alarm and last election come from the leader", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("follower", 3, 1, 900, 900)},
                                    {1, node("leader", 3, 1, 900, 900)},
                                    {2, node("follower", 3, 1, 900, 900)}};
  CHECK(table_of(summarise("g", answers)).find("verified") == std::string::npos);
  for (auto& [replica, answer] : answers) {
    answer.status["verified"] = {{"index", 800 + replica},
                                 {"age_ms", 70},
                                 {"alarm", ""},
                                 {"entries_since", 12},
                                 {"verdict", "equal"}};
    answer.status["last_election"] = {
        {"view", 3}, {"cause", "suspicion"}, {"age_ms", 5000 + replica}, {"took_us", 840}};
    answer.status["detection"] = {{"period_us", 200}, {"misses_needed", 6}};
    answer.status["members"] = Json::array();
  }
  const auto text = [&] { return table_of(summarise("g", answers)); };
  INFO(text());
  CHECK(text().find("\nverified: log index 801, 70 ms ago, 12 entries since; last verdict: equal\n"
                    "last election: view 3 (suspicion), 5001 ms ago, took 840 us\nheartbeat every "
                    "200 us, suspected after 6 missed in a row\n") != std::string::npos);
  answers[1].status["verified"]["alarm"] = "replica 2 diverged";
  CHECK(text().find("; last verdict: equal\nalarm: replica 2 diverged\n") != std::string::npos);
}

TEST_CASE("status: which replicas could continue the leader's connections, and their fate",
          "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 3, 1, 900, 900)},
                                    {1, node("follower", 3, 1, 900, 900)}};
  const auto lines = [&] {
    const std::string text = table_of(summarise("g", answers));
    const std::size_t at = text.find("connections: ");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  CHECK(lines().empty());
  for (auto& [replica, answer] : answers) {
    answer.status.update({{"connections", 812 - replica},
                          {"keeps_connections", true},
                          {"last_adopted", 0},
                          {"last_reset", 0}});
  }
  CHECK(lines() == "connections: 812, followed 811 by replica 1");
  answers[0].status.update({{"last_adopted", 810}, {"last_reset", 2}});
  CHECK(lines() ==
        "connections: 812, followed 811 by replica 1; at the last change 810 adopted, 2 reset");
  answers[0].status["keeps_connections"] = false;
  CHECK(lines().rfind("connections: 812, reset when the leader changes", 0) == 0);
  answers[0].status["keeps_connections"] = "x";
  CHECK(lines().rfind("connections: 812, reset when the leader changes", 0) == 0);
}

TEST_CASE("status: the reason why no checkpoints are taken", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 1, 0, 900, 900)}};
  answers[0].status["checkpoint"] = {{"last", 0}, {"none_because", "there is no CRIU"}};
  CHECK(
      table_of(summarise("g", answers)).find("\ncheckpoint: none are taken: there is no CRIU\n") !=
      std::string::npos);
}

TEST_CASE("status: calls that bypassed the library are listed below, by name", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 1, 0, 7, 7)},
                                    {1, node("follower", 1, 0, 7, 7)}};
  answers[0].status["unhooked_calls"] = 0;
  CHECK(table_of(summarise("g", answers)).find("\nunhooked calls: 0\n") != std::string::npos);
  answers[1].status["unhooked_calls"] = 12;
  answers[1].status["unhooked"] = Json::array({{{"call", "futex"},
                                                {"object", "/usr/bin/server"},
                                                {"offset", "0x1284"},
                                                {"outcome", "scheduled"},
                                                {"count", 12}}});
  const std::string table = table_of(summarise("g", answers));
  INFO(table);
  CHECK(table.find(
            "\nunhooked calls: 12\n  futex at /usr/bin/server+0x1284: scheduled, 12 times\n") !=
        std::string::npos);
  answers[1].status["unhooked_calls"] = nullptr;  // its kernel cannot report them
  CHECK(table_of(summarise("g", answers)).find("\nunhooked calls: 0\n") != std::string::npos);
}

TEST_CASE("status: without one follower's answer: degraded; without the leader's: no leader",
          "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 1, 0, 7, 7)},
                                    {1, node("follower", 1, 0, 7, 7)},
                                    {2, {Reply::kSilent, {}}}};
  Json s = summarise("g", answers);
  CHECK(health_of(s) == Health::kDegraded);
  CHECK(table_of(s).find("does not answer") != std::string::npos);
  answers[0] = {Reply::kAbsent, {}};
  s = summarise("g", answers);
  CHECK(health_of(s) == Health::kNoLeader);
  CHECK(table_of(s).find("node is gone") != std::string::npos);
  CHECK(health_of(summarise("g", {{0, {Reply::kDenied, {}}}})) == Health::kNoLeader);
}

TEST_CASE("status: alone on its host and drained: no replica is missing", "[ctl]") {
  Json s = summarise("g", {{1, {Reply::kDrained, {}}}});
  CHECK((health_of(s) == Health::kDegraded && s["health"] == "drained"));
  CHECK(table_of(s).find("g: drained: ") == 0);
  s = summarise("g", {{1, {Reply::kDrained, {}}}, {2, {Reply::kAbsent, {}}}});
  CHECK(health_of(s) == Health::kNoLeader);
}

TEST_CASE("status: a deposed leader that does not know it yet does not count", "[ctl]") {
  const Json s = summarise("g", {{0, node("leader", 1, 0, 7, 7)},
                                 {1, node("follower", 2, 2, 9, 9)},
                                 {2, node("leader", 2, 2, 9, 9)}});
  CHECK(s["leader"] == 2);
  CHECK(health_of(s) == Health::kWell);
  std::map<int, NodeAnswer> answers{{1, node("leader", 1, 1, 7, 7)},
                                    {2, node("leader", 2, 2, 100, 100)}};
  answers[1].status["peers"][0]["applied"] = 5;
  CHECK(summarise("g", answers)["replicas"][0]["applied"] == 90);  // the newer leader's value
}

TEST_CASE("status: replicas on other hosts are shown as the leader knows them", "[ctl]") {
  Json s = summarise("g", {{1, node("leader", 2, 1, 100, 100)}});
  CHECK(health_of(s) == Health::kWell);
  REQUIRE(s["replicas"].size() == 3);
  CHECK(s["replicas"][0]["state"] == "on another host");
  CHECK(s["replicas"][0]["applied"] == 90);
  CHECK(s["replicas"][0]["lag_entries"] == 10);
  CHECK(s["replicas"][2]["state"] == "on another host");
  CHECK_FALSE(s["replicas"][2].contains("applied"));
  s = summarise("g", {{2, node("follower", 2, 1, 100, 100)}});  // it knows the leader, and no more
  CHECK(health_of(s) == Health::kNotServing);
  CHECK(s["leader"] == 1);
  s = summarise("g", {{2, node("candidate", 3, 255, 100, 100)}});
  CHECK(health_of(s) == Health::kNoLeader);
}

TEST_CASE("status: an answer with strange values is displayed but not trusted", "[ctl]") {
  NodeAnswer odd;
  odd.reply = Reply::kAnswer;
  odd.status = {{"role", "leader"}, {"view", -5}, {"leader", 0}, {"commit", "x"}};
  CHECK_NOTHROW(table_of(summarise("g", {{0, odd}})));
}

TEST_CASE("members: from the leader, with its own knowledge; otherwise from a follower", "[ctl]") {
  const Json members = Json::array({{{"replica", 0}, {"member", "voter"}},
                                    {{"replica", 1}, {"member", "voter"}},
                                    {{"replica", 3}, {"member", "learner"}}});
  std::map<int, NodeAnswer> answers{{0, node("follower", 2, 1, 95, 90)},
                                    {1, node("leader", 2, 1, 100, 100)}};
  answers[0].status["members"] = Json::array();
  answers[1].status["members"] = members;
  answers[1].status["peers"] = Json::array(
      {{{"replica", 3}, {"last", 50}, {"streaming", true}, {"needs_checkpoint", false}}});
  const std::string table = members_of(summarise("g", answers));
  INFO(table);
  CHECK(table.find("STREAMED TO") != std::string::npos);
  CHECK(table.find("learner") != std::string::npos);
  CHECK(table.find("50") != std::string::npos);
  answers[0].status["members"] = members;
  answers.erase(1);
  CHECK(members_of(summarise("g", answers)).find("learner") != std::string::npos);
  CHECK(members_of(summarise("g", {})).find("no node reports") != std::string::npos);
}

TEST_CASE("status: a removed replica is not missing", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 4, 0, 90, 90)},
                                    {1, node("follower", 4, 0, 90, 90)},
                                    {2, {Reply::kAbsent, {}}},
                                    {3, node("follower", 4, 0, 90, 90)}};
  const auto voter = [](int replica) { return Json{{"replica", replica}, {"member", "voter"}}; };
  answers[0].status["members"] = Json::array({voter(0), voter(1), voter(3)});
  CHECK(health_of(summarise("g", answers)) == Health::kWell);
  CHECK(summarise("g", answers)["replicas"][2]["state"] == "no member");
  answers[0].status["members"].push_back(voter(2));
  CHECK(health_of(summarise("g", answers)) == Health::kDegraded);
  CHECK(summarise("g", answers)["replicas"][2]["state"] == "node is gone");
}

TEST_CASE("status: an analysis replica reports its findings, and that it differs", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 1, 0, 100, 100)},
                                    {1, node("analysis", 1, 0, 100, 40)}};
  Json& a = answers[1].status["analysis"];
  a = {{"tool", "helgrind"},
       {"entry", 40},
       {"got", 100},
       {"behind", 60},
       {"findings", 1},
       {"reports", 3},
       {"report", "/r.txt"},
       {"first_findings", {"race at f"}},
       {"digests_equal", 2},
       {"equal_to", 31},
       {"differs", nullptr},
       {"ended", ""},
       {"spooled_bytes", 5U << 20}};
  const auto text = [&] { return table_of(summarise("g", answers)); };
  CHECK(health_of(summarise("g", answers)) == Health::kWell);
  INFO(text());
  CHECK(
      text().find("\nanalysis by replica 1: helgrind, entry 40 of 100, 60 behind (5 MB on disk); 1 "
                  "findings, report: /r.txt; 2 digests equal to the group's, the last at entry 31"
                  "\n  race at f\n") != std::string::npos);
  CHECK(text().find("goes no further") == std::string::npos);
  a["differs"] = {{"index", 35}, {"text", "clock"}};
  a["ended"] = "the spool is full";
  INFO(text());
  CHECK(text().find("; differs from the group's at entry 35: clock\n") != std::string::npos);
  CHECK(text().find("\n  it has stopped: the spool is full\n") != std::string::npos);
}

namespace {

NodeAnswer leader_of_three(const char* second = "voter") {
  NodeAnswer answer = node("leader", 2, 0, 100, 100);
  const auto member = [](int replica, const char* role) {
    return Json{{"replica", replica},
                {"member", role},
                {"incarnation", 1},
                {"connected", true},
                {"needs_checkpoint", false}};
  };
  answer.status["members"] = {member(0, "voter"), member(1, second), member(2, "voter")};
  const auto peer = [](int replica, int applied) {
    return Json{{"replica", replica}, {"applied", applied}, {"last", applied + 10},
                {"streaming", true},  {"connected", true},  {"readiness", readiness(false)}};
  };
  answer.status["peers"] = {peer(1, 40), peer(2, 41)};
  return answer;
}

}  // namespace

TEST_CASE("status: a server that does not serve is reported, and is not well", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, leader_of_three()},
                                    {1, node("follower", 2, 0, 100, 90)},
                                    {2, node("follower", 2, 0, 100, 90)}};
  answers[0].status["not_serving"] = nullptr;
  answers[1].status["not_serving"] = "the server listens on no port";
  answers[1].status["readiness"]["why_not"] = "the server listens on no port";
  CHECK(health_of(summarise("g", answers)) == Health::kWell);  // only the leader's report counts
  answers[0].status["not_serving"] = "the server listens on no port";
  answers[0].status["readiness"]["why_not"] = "the server listens on no port";
  const Json s = summarise("g", answers);
  CHECK(health_of(s) == Health::kNotServing);
  CHECK(table_of(s).find("g: NOT SERVING: its server makes no progress\nnot serving, leader 0") ==
        0);
  CHECK(table_of(s).find("\nnot serving: the server listens on no port; see server.log\n") !=
        std::string::npos);
}

TEST_CASE("status: how many may be lost, also if the others are on other hosts", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, leader_of_three()}};
  const auto spare = [&answers] { return summarise("g", answers)["may_lose"]; };
  CHECK(spare() == 1);
  answers[0].status["peers"][1]["connected"] = false;
  CHECK(spare() == 0);
  answers[0] = leader_of_three();
  answers[0].status["peers"][1]["needs_checkpoint"] = true;
  CHECK(spare() == 0);
  answers[0] = leader_of_three();
  for (Json& peer : answers[0].status["peers"]) peer["readiness"]["recovers"] = true;
  CHECK(spare() == 0);
  answers[0] = leader_of_three("learner");  // two voters: both are needed
  CHECK(spare() == 0);
  // A follower knows it from the reports of the others.
  answers[0] = leader_of_three();
  answers[0].status["role"] = "follower";
  answers[0].status["leader"] = 1;
  answers[0].status["readiness"]["takes_clients"] = false;
  CHECK(spare() == 0);
  answers[0].status["peers"][0]["readiness"]["takes_clients"] = true;
  CHECK(spare() == 1);
  CHECK(summarise("g", answers)["health"] == "well");
  answers[0].status["peers"][0].erase("readiness");
  CHECK(summarise("g", answers)["verdict"]["text"] ==
        "replica 1 leads, but has not reported whether it serves");
}

TEST_CASE("status: nodes that are starting are not gone", "[ctl]") {
  const Json s = summarise(
      "g", {{0, {Reply::kStarts, {}}}, {1, {Reply::kStarts, {}}}, {2, {Reply::kStarts, {}}}});
  CHECK(s["health"] == "starting");
  CHECK(health_of(s) == Health::kNotServing);
  CHECK(s["replicas"][0]["state"] == "starts");
  CHECK(table_of(s).find("g: starting: waits for replicas 0, 1, 2\n") == 0);
}

TEST_CASE("status: a difference between replicas is in the verdict", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, leader_of_three()}};
  answers[0].status["verified"] = {{"alarm", "the replicas differ, none has a majority"},
                                   {"differ", true}};
  CHECK(health_of(summarise("g", answers)) == Health::kDegraded);
  const auto warns = [&answers] {
    return table_of(summarise("g", answers)).find("g: serving, 3 of 3, BUT THE REPLICAS DIFFER") ==
           0;
  };
  CHECK(warns());
  answers[0].status["verified"].erase("differ");  // an older node's answer
  CHECK(warns());
  answers[0].status["verified"]["differ"] = false;  // it is over
  CHECK_FALSE(warns());
}

TEST_CASE("status: a member on this machine reports its own indexes", "[ctl]") {
  const std::map<int, NodeAnswer> answers{{0, leader_of_three()},
                                          {1, node("follower", 2, 0, 100, 97)}};
  const Json members = members_json(summarise("g", answers))["members"];
  CHECK(members[0]["applied"] == 100);
  CHECK(members[1]["applied"] == 97);
  CHECK(members[1]["streaming"] == true);  // only the leader knows this
  CHECK(members[2]["applied"] == 41);
}

TEST_CASE("status: unknown values are not printed", "[ctl]") {
  NodeAnswer alone = node("candidate", 2, 255, 100, 97);
  alone.status["leader"] = nullptr;
  alone.status["last_election"] = nullptr;
  alone.status["detection"] = nullptr;
  alone.status["verified"] = {{"index", 0},
                              {"verdict", "unknown"},
                              {"entries_since", 97},
                              {"age_ms", nullptr},
                              {"alarm", ""}};
  const std::string table = table_of(summarise("g", {{0, alone}}));
  INFO(table);
  CHECK(table.find("heartbeat") == std::string::npos);
  CHECK(table.find("election") == std::string::npos);
  CHECK(table.find(" ms ago") == std::string::npos);
  CHECK(table.find("may be lost") == std::string::npos);
}

TEST_CASE("status: unsupported requests of the server are counted", "[ctl]") {
  std::map<int, NodeAnswer> answers{{0, node("leader", 2, 0, 100, 100)}};
  answers[0].status.update(
      {{"unhooked_calls", 0},
       {"unsupported", {{"datagrams", 3}, {"udp_ports", 1}, {"sandboxes", 0}}}});
  CHECK(table_of(summarise("g", answers))
            .find("\nunsupported: 3 datagrams to others dropped, 1 UDP ports opened that no "
                  "client reaches; runtime.log of each replica names them\n") != std::string::npos);
}

TEST_CASE("status: the leader reports an upgrade of the server", "[ctl]") {
  const auto table = [](const char* state, const char* why) {
    std::map<int, NodeAnswer> answers{{0, node("leader", 2, 0, 100, 100)}};
    answers[0].status["upgrade"] = {{"state", state}, {"entry", 7}, {"why", why}};
    return table_of(summarise("g", answers));
  };
  const auto has_line = [](const std::string& text, const char* line) {
    return text.find(line) != std::string::npos;
  };
  CHECK(has_line(table("trial", ""), "\nupgrade at entry 7: trial, no client is let in\n"));
  CHECK(has_line(table("kept", ""), "\nupgrade at entry 7: kept\n"));
  CHECK(
      has_line(table("rolled back", "it ended"), "\nupgrade at entry 7: rolled back: it ended\n"));
  CHECK_FALSE(has_line(table("none", ""), "upgrade"));
}

TEST_CASE("status: the end of a group that does not run is reported", "[ctl]") {
  Json s = summarise("g", {{0, {Reply::kAbsent, {}, nullptr}}});
  CHECK(table_of(s).find("\nended: ") == std::string::npos);
  s["ended"] = "exit status 3, at 2026-11-30T10:00:00+0000";
  CHECK(table_of(s).find("\nended: exit status 3, at 2026-11-30T10:00:00+0000; crane-ctl logs has "
                         "its messages\n") != std::string::npos);
}

TEST_CASE("status: of a node that the operator cannot reach, the leader's report counts", "[ctl]") {
  std::map<int, NodeAnswer> answers{
      {0, node("leader", 1, 0, 9, 9)}, {1, node("follower", 1, 0, 9, 9)}, {2, {}}};
  Json members = Json::array(), peers = Json::array();
  for (int i = 0; i < 3; ++i) {
    members.push_back({{"replica", i}, {"member", "voter"}});
    if (i == 0) continue;
    peers.push_back({{"replica", i},
                     {"connected", true},
                     {"streaming", true},
                     {"applied", 7},
                     {"readiness", readiness(false)}});
  }
  answers[0].status["members"] = members;
  answers[0].status["peers"] = peers;
  for (const auto& [reply, state] : {std::pair{Reply::kUnreachable, "unreachable"},
                                     {Reply::kOtherSecret, "another secret"},
                                     {Reply::kOtherReplica, "another replica"}}) {
    answers[2].reply = reply;
    const Json s = summarise("g", answers);
    CHECK(s["replicas"][2]["state"] == state);
    CHECK(s["replicas"][2]["lag_entries"] == 2);
    CHECK(s["verdict"]["text"] == "serving, 3 of 3, fault tolerant");
  }
  // The leader says that the replica is lost, too.
  answers[0].status["peers"][1]["connected"] = false;
  answers[2].reply = Reply::kUnreachable;
  const Json lost = summarise("g", answers);
  CHECK(lost["verdict"]["text"].get<std::string>().find("2 of 3: ONE MORE LOSS STOPS IT") !=
        std::string::npos);
  // No node can be reached.
  for (auto& [replica, answer] : answers) answer = {Reply::kUnreachable, {}, {}, false};
  const Json none = summarise("g", answers);
  CHECK(health_of(none) == Health::kNoLeader);
  CHECK(none["replicas"][0]["state"] == "unreachable");
}

TEST_CASE("status: a replica that starts has the operations of its node", "[ctl][progress]") {
  std::map<int, NodeAnswer> answers;
  answers[0].reply = Reply::kStarts;
  answers[0].operations = {{{"operation", "unpack"},
                            {"replica", 0U},
                            {"step", "the checkpoint 7.9"},
                            {"unit", "bytes"},
                            {"done", 1'000'000U},
                            {"of", 4'000'000U},
                            {"per_s", 0U},
                            {"left_ms", nullptr}}};
  const Json summary = summarise("shop", answers);
  CHECK(summary["replicas"][0]["state"] == "starts");
  const std::string text = table_of(summary);
  INFO(text);
  CHECK(text.find("replica 0: unpack  [=====>              ]  25 %, 1.0 MB of 4.0 MB  "
                  "(the checkpoint 7.9)\n") != std::string::npos);
}
