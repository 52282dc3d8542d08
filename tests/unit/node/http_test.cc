// SPDX-License-Identifier: Apache-2.0
// A node's HTTP answers without a socket: health, metrics, the last minutes.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "proxy/host/http/health.h"
#include "proxy/host/http/history.h"
#include "proxy/host/http/metrics.h"
#include "proxy/host/http/page.h"
#include "proxy/host/http/recent_events.h"
#include "proxy/replica/role/commit_times.h"
#include "tests/unit/node/three_voters.h"

namespace crane::node {
namespace {

NodeStatus follower() { return status_of_three(1, "follower", 0); }

NodeStatus leader() {
  NodeStatus s = status_of_three(0, "leader", 0);
  s.readiness.takes_clients = true;
  return s;
}

bool holds(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

}  // namespace

// HTTP-1: every answer is made from a constant status.
TEST_CASE("a leader answers /leader once its server knows that it leads") {
  NodeStatus s = leader();
  CHECK(leads(s).status == 200);
  CHECK(ready(s, {}).status == 200);
  CHECK(follows(s, {}).status == 503);
  s.readiness.takes_clients = false;
  CHECK(leads(s).status == 503);
  CHECK(ready(s, {}).status == 503);
}

TEST_CASE("a follower answers /replica while its lag is small") {
  NodeStatus s = follower();
  CHECK(leads(s).reason == "this replica is a follower");
  CHECK(follows(s, {}).status == 200);
  s.lag_ns = 150'000'000;
  CHECK(follows(s, {}).status == 200);
  CHECK(follows(s, parse_lag("150ms")).status == 200);
  CHECK(follows(s, parse_lag("149ms")).reason == "its server is 150 ms behind");
  CHECK(ready(s, parse_lag("100ms")).status == 503);
}

TEST_CASE("a replica that cannot take over is not ready") {
  const auto reason = [](auto change) {
    NodeStatus s = follower();
    change(s);
    CHECK(follows(s, {}).status == 503);
    return follows(s, {}).reason;
  };
  CHECK(reason([](NodeStatus& s) { s.leader = kReplicasMax; }) == "no leader is known");
  CHECK(reason([](NodeStatus& s) { s.no_quorum = "1 of 3"; }) == "1 of 3");
  CHECK(reason([](NodeStatus& s) { s.readiness.needs_checkpoint = true; }) ==
        "it lacks entries that left the log");
  CHECK(reason([](NodeStatus& s) { s.readiness.no_room = true; }) == "it has no room");
  CHECK(reason([](NodeStatus& s) {
          s.readiness.recovers = s.readiness.runs = true;
          s.readiness.progress = {12'400, 24'272, 4'000, 3'000};
        }) == "it replays, 12,400 of 24,272 entries, 3 s left");
  CHECK(reason([](NodeStatus& s) { s.not_serving = "it has ended"; }) == "it has ended");
  CHECK(reason([](NodeStatus& s) { s.role = "candidate"; }) == "this replica is a candidate");
}

TEST_CASE("/health describes the group as this replica sees it") {
  NodeStatus s = follower();
  CHECK(health(s).status == 200);
  s.alarm = "replica 2 differs";
  s.differ = true;
  CHECK(health(s).reason == "replicas differ: replica 2 differs");
  s = follower();
  s.no_quorum = "no quorum: 1 of 3";
  CHECK(health(s).reason == "NOT SERVING: no quorum: no quorum: 1 of 3");
}

TEST_CASE("a leader without room for inputs does not serve, and reports where it lacks room") {
  NodeStatus s = leader();
  REQUIRE(leads(s).status == 200);
  s.readiness.no_room = true;
  s.log.no_room = "/disk: the disk is full";
  for (const HealthAnswer& answer : {health(s), leads(s), ready(s, {})}) {
    CHECK(answer.status == 503);
    CHECK(answer.reason ==
          "NOT SERVING: inputs wait: replica 0, which leads, has no room for them: /disk: the disk "
          "is full");
  }
}

TEST_CASE("a follower reports the leader's verdict on the group") {
  for (const char* path : {"leader", "follower"}) {
    CAPTURE(path);
    const bool is_leader = path == std::string("leader");
    NodeStatus s = is_leader ? leader() : follower();
    CHECK(verdict_of(s).text == "serving, 3 of 3, fault tolerant");
    control::Readiness& led = is_leader ? s.readiness : *s.peers[0].reported;
    led.takes_clients = false;
    CHECK(health(s).reason ==
          "not serving: replica 0 leads, but its server does not know that yet");
    led.takes_clients = true;
    s.log.members[2].connected = false;
    CHECK(verdict_of(s).text == "serving, 2 of 3: ONE MORE LOSS STOPS IT; replica 2 is gone");
    CHECK(health(s).status == 200);
    s.peers[2].was_there = false;
    CHECK(verdict_of(s).notes == std::vector<std::string>{"replica 2 has not started yet"});
  }
  NodeStatus s = follower();
  s.peers[0].reported.reset();
  CHECK(health(s).reason == "replica 0 leads, but has not reported whether it serves");
}

TEST_CASE("a lag is a number with a unit") {
  CHECK(parse_lag("100ms") == 100'000'000);
  CHECK(parse_lag("2s") == 2'000'000'000);
  CHECK(parse_lag("7us") == 7'000);
  for (const char* wrong : {"", "100", "ms", "-1ms", "1m", "1 ms", "99999999999999999999s"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_lag(wrong));
  }
}

TEST_CASE("metrics contain the status, with the group's labels") {
  NodeStatus s = leader();
  s.readiness.recovers = true;
  s.readiness.progress = {30, 45, 5, 3'000};
  s.committed = 40;
  s.applied = 37;
  s.last = 45;
  s.reigns = 2;
  s.log.members[2].connected = false;
  s.follower_lags[1] = {10, 50'000'000};
  s.commit_times.add(7'000);
  s.commit_times.add(60'000'000);
  Surroundings around;
  around.file_systems = {{"state", "/run/crane", 1000, 10}};
  around.checkpoint = {20, 1'700'000'000, 4096};
  const std::string text = metrics_text(s, around);
  const std::string labels = "{group=\"shop\",replica=\"0\"";
  CHECK(holds(text, "crane_is_leader" + labels + "} 1"));
  CHECK(holds(text, "crane_leader_changes_total" + labels + "} 2"));
  CHECK(holds(text, "crane_losses_tolerated" + labels + "} 0"));
  CHECK(holds(text, "crane_group_serving" + labels + "} 1"));
  CHECK(holds(text, "crane_group_well" + labels + "} 0"));
  CHECK(holds(text, "crane_supervised" + labels + "} 1"));
  s.unsupervised = true;
  CHECK(holds(metrics_text(s, around), "crane_supervised" + labels + "} 0"));
  CHECK(holds(text, "crane_recovery_entries_left" + labels + "} 15"));
  CHECK(holds(text, "crane_recovery_seconds_left" + labels + "} 3"));
  CHECK(holds(text, "crane_proposals_pending" + labels + "} 5"));
  CHECK(holds(text, "crane_lag_entries" + labels + "} 3"));
  CHECK(holds(text, "crane_follower_lag_entries" + labels + ",follower=\"1\"} 10"));
  CHECK(holds(text, "crane_follower_lag_seconds" + labels + ",follower=\"1\"} 0.05"));
  CHECK(holds(text, "crane_follower_connected" + labels + ",follower=\"2\"} 0"));
  CHECK(holds(text, "crane_commit_duration_seconds_bucket" + labels + ",le=\"1e-05\"} 1"));
  CHECK(holds(text, "crane_commit_duration_seconds_bucket" + labels + ",le=\"+Inf\"} 2"));
  CHECK(holds(text, "crane_checkpoint_timestamp_seconds" + labels + "} 1700000000"));
  CHECK(holds(text,
              "crane_filesystem_free_bytes" + labels + ",holds=\"state\",path=\"/run/crane\"} 10"));
}

TEST_CASE("metrics of leaders, disks and checkpoints are left out where they do not apply") {
  const std::string text = metrics_text(follower(), {});
  CHECK(holds(text, "crane_losses_tolerated{group=\"shop\",replica=\"1\"} 1"));
  for (const char* name : {"crane_recovery_", "crane_follower_", "crane_store_", "crane_durable_",
                           "crane_checkpoint_timestamp"}) {
    CAPTURE(name);
    CHECK(text.find(name) == std::string::npos);
  }
}

TEST_CASE("the last minutes are rates between samples, oldest first") {
  History history;
  NodeStatus s = leader();
  s.now_ns = 1'000'000'000;
  s.entries[static_cast<std::size_t>(EntryType::kData)] = 100;
  history.add(s, 1000);
  CHECK(history.columns()["unix_ms"].empty());
  s.now_ns += History::kPeriodNs;
  s.entries[static_cast<std::size_t>(EntryType::kData)] = 300;
  s.bytes_out = 1000;
  s.commit_times.add(9'000);
  history.add(s, 3000);
  const auto columns = history.columns();
  CHECK(columns["unix_ms"] == nlohmann::json{3000});
  CHECK(columns["inputs_per_s"] == nlohmann::json{100.0});
  CHECK(columns["sent_bytes_per_s"] == nlohmann::json{500.0});
  CHECK(columns["commit_p99_us"] == nlohmann::json{10});
  s.now_ns += History::kPeriodNs;
  history.add(s, 5000);
  CHECK(history.columns()["commit_p50_us"][1].is_null());  // nothing was proposed since then
  for (std::size_t i = 0; i < History::kSamples; ++i) {
    s.now_ns += History::kPeriodNs;
    history.add(s, 7000);
  }
  CHECK(history.columns()["lag_ms"].size() == History::kSamples);
  CHECK(history.columns()["unix_ms"][0] == 7000);
}

TEST_CASE("the time of a proposal counts once, and only within its leadership") {
  replica::CommitTimes times;
  times.proposed(Index{5}, 1'000);
  times.committed(Index{4}, 2'000);
  CHECK(times.taken().total() == 0);
  times.committed(Index{5}, 8'000);
  times.committed(Index{5}, 9'000);
  CHECK(times.taken().total() == 1);
  CHECK(times.taken().sum_ns == 7'000);
  times.proposed(Index{6}, 10'000);
  times.forget();
  times.committed(Index{6}, 11'000);
  CHECK(times.taken().total() == 1);
}

TEST_CASE("quantiles are upper bounds of buckets") {
  LatencyHistogram taken;
  CHECK(taken.quantile_ns(0.5) == 0);
  for (int i = 0; i < 98; ++i) taken.add(15'000);
  taken.add(3'000'000);
  taken.add(60'000'000'000);
  CHECK(taken.quantile_ns(0.5) == 20'000);
  CHECK(taken.quantile_ns(0.99) == 5'000'000);
  CHECK(taken.quantile_ns(1.0) == LatencyHistogram::kBounds.back());
}

TEST_CASE("the page is complete") {
  CHECK(page_html().starts_with("<!doctype html>"));
  CHECK(page_html().find("</html>") != std::string_view::npos);
}

TEST_CASE("the page has the newest events of all replicas of this machine") {
  const std::string home =
      std::filesystem::temp_directory_path() / ("crane-events-" + std::to_string(::getpid()));
  const auto write = [&home](int replica, const char* name, int from, int to) {
    const std::string directory = home + "/r" + std::to_string(replica);
    std::filesystem::create_directories(directory);
    std::ofstream out(directory + "/" + name, std::ios::app);
    for (int i = from; i < to; ++i) {
      out << nlohmann::json{{"unix_ms", i}, {"replica", replica}, {"event", "e"}, {"text", "t"}}
          << "\n";
    }
  };
  RecentEvents events;
  const auto times = [&] {
    std::vector<int> all;
    for (const nlohmann::json& event : events.look(home)) all.push_back(event["unix_ms"]);
    return all;
  };
  CHECK(times().empty());
  write(0, "events.jsonl.1", 10, 12);
  write(1, "events.jsonl", 20, 21);
  CHECK(times() == std::vector<int>{10, 11, 20});
  write(0, "events.jsonl", 30, 31);
  CHECK(times() == std::vector<int>{10, 11, 20, 30});
  // More than the tail that is read, and than the page shows: the newest ones.
  write(1, "events.jsonl", 100, 2'000);
  const std::vector<int> last = times();
  CHECK(last.size() == RecentEvents::kCount);
  CHECK(last.back() == 1'999);
  CHECK(last.front() == 2'000 - static_cast<int>(RecentEvents::kCount));
  std::filesystem::remove_all(home);
}

}  // namespace crane::node
