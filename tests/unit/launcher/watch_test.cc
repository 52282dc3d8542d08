// SPDX-License-Identifier: Apache-2.0
// The output of crane-ctl top and events for given answers and files.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/control/journal.h"
#include "runtime/launcher/ctl/events.h"
#include "runtime/launcher/ctl/process_tree.h"
#include "runtime/launcher/ctl/top.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

NodeAnswer answer(std::uint64_t inputs, pid_t pid = 10, pid_t server = 20) {
  return {Reply::kAnswer,
          Json{{"replica", 1},
               {"role", "leader"},
               {"pid", static_cast<unsigned>(pid)},
               {"server_pid", static_cast<unsigned>(server)},
               {"inputs", inputs},
               {"bytes_in", inputs * 10},
               {"connections", 4U},
               {"lag_ms", 3U}},
          {}};
}

ProcessStat process(pid_t parent, double cpu_seconds, std::uint64_t bytes) {
  ProcessStat stat;
  stat.parent = parent;
  stat.cpu_seconds = cpu_seconds;
  stat.resident_bytes = bytes;
  return stat;
}

struct Directory {
  std::string path;
  Directory()
      : path(std::filesystem::temp_directory_path() /
             ("crane-watch-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path + "/r0");
    std::filesystem::create_directories(path + "/r1");
  }
  ~Directory() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name) << text;
  }
};

std::string line(int ms, int replica, const std::string& text) {
  return Json{{"unix_ms", ms}, {"replica", replica}, {"event", "e"}, {"text", text}}.dump() + "\n";
}

}  // namespace

TEST_CASE("top shows the changes between two looks") {
  Look before, now;
  before.at_ns = 1'000'000'000;
  now.at_ns = 3'000'000'000;
  before.groups["shop"][1] = answer(100);
  now.groups["shop"][1] = answer(500);
  before.processes = {
      {10, process(1, 1.0, 0)}, {20, process(1, 5.0, 100)}, {21, process(20, 1.0, 50)}};
  now.processes = {
      {10, process(1, 1.5, 0)}, {20, process(1, 6.0, 100)}, {21, process(20, 2.0, 60)}};
  const Json rates = rates_between(before, now);
  REQUIRE(rates.size() == 1);
  CHECK(rates[0]["inputs_per_s"] == 200);
  CHECK(rates[0]["received_bytes_per_s"] == 2000);
  CHECK(rates[0]["node_cpu_percent"] == 25.0);
  CHECK(rates[0]["server_cpu_percent"] == 100.0);
  CHECK(rates[0]["server_resident_bytes"] == 160);
  CHECK(top_table(rates).find("shop") != std::string::npos);
}

TEST_CASE("top compares a process only with itself") {
  Look before, now;
  before.at_ns = 1;
  now.at_ns = 2'000'000'001;
  before.groups["shop"][1] = answer(100);
  now.groups["shop"][1] = answer(5, 11);
  CHECK(rates_between(before, now).empty());
  now.groups["shop"][1] = answer(200, 10, 30);
  CHECK(rates_between(before, now)[0]["server_cpu_percent"].is_null());
  now.groups["shop"][1].reply = Reply::kSilent;
  CHECK(rates_between(before, now).empty());
  now.groups["new"][1] = answer(1);
  CHECK(rates_between(before, now).empty());
}

TEST_CASE("top shows each long operation with a bar, a percentage and the time left") {
  Look before, now;
  before.at_ns = 1;
  now.at_ns = 2'000'000'001;
  before.groups["shop"][1] = now.groups["shop"][1] = answer(100);
  Json& status = now.groups["shop"][1].status;
  status["operations"] = {{{"operation", "give"},
                           {"replica", 1U},
                           {"step", "to replica 2"},
                           {"unit", "bytes"},
                           {"done", 1'000'000U},
                           {"of", 4'000'000U},
                           {"per_s", 1'000'000U},
                           {"left_ms", 3'000U}},
                          {{"operation", "checkpoint"},
                           {"replica", 1U},
                           {"step", "dumping"},
                           {"unit", "bytes"},
                           {"done", 0U},
                           {"of", 0U},
                           {"per_s", 0U},
                           {"left_ms", nullptr}}};
  status["readiness"] = {
      {"progress", {{"done", 1'200U}, {"of", 1'200U}, {"per_s", 9U}, {"left_ms", 0U}}}};
  const Json rates = rates_between(before, now);
  REQUIRE(rates.size() == 1);
  CHECK(rates[0]["operations"].size() == 3);
  const std::string text = top_table(rates);
  INFO(text);
  CHECK(
      text.ends_with("shop, replica 1: give  [=====>              ]  "
                     "25 %, 1.0 MB of 4.0 MB, 3 s left  (to replica 2)\n"
                     "shop, replica 1: checkpoint  (dumping)\n"
                     "shop, replica 1: recovery  [====================]  "
                     "100 %, 1,200 of 1,200 entries, less than 1 s left  (runs what it missed)\n"));
}

TEST_CASE("the list of the machine's processes has this process") {
  const Processes all = read_processes();
  REQUIRE(all.count(::getpid()) == 1);
  CHECK(all.at(::getpid()).parent == ::getppid());
  CHECK(tree_of(all, ::getpid()).resident_bytes > 0);
}

TEST_CASE("events of all replicas form one list, ordered by time") {
  const Directory home;
  home.write("r0/events.jsonl", line(20, 0, "b") + line(40, 0, "d"));
  home.write("r1/events.jsonl.1", line(10, 1, "a"));
  home.write("r1/events.jsonl", line(30, 1, "c") + "{\"unix_ms\":50,\"repl");
  bool denied = false;
  const Json events = read_events(home.path, denied);
  CHECK_FALSE(denied);
  std::string texts;
  for (const Json& e : events) texts += e["text"].get<std::string>();
  CHECK(texts == "abcd");
  CHECK(control::last_of(events, 2).size() == 2);
  CHECK(control::last_of(events, 2)[0]["text"] == "c");
  CHECK(control::last_of(events, 0) == events);
  CHECK(control::last_of(events, 9) == events);
}

TEST_CASE("lines that are no events are left out") {
  const Directory home;
  home.write("r0/events.jsonl", "[]\nnull\n{\"unix_ms\":\"1\"}\n\n" + line(1, 0, "good"));
  bool denied = false;
  const Json events = read_events(home.path, denied);
  REQUIRE(events.size() == 1);
  CHECK(events_table(events).find("good") != std::string::npos);
}

}  // namespace crane::launcher
