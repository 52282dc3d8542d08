// SPDX-License-Identifier: Apache-2.0
// GOAL    `crane-ctl logs -f` prints each byte once.
// METHOD  A LogReader over files that the test writes as replicas do.
// CHECKS  LOGS-1
#include "runtime/launcher/ctl/log_reader.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;

struct Logs {
  std::string directory;
  Logs() {
    char name[] = "/tmp/crane-logs-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    directory = name;
  }
  ~Logs() { fs::remove_all(directory); }
  Logs(const Logs&) = delete;
  Logs& operator=(const Logs&) = delete;
  std::string path(int replica) const { return directory + "/" + std::to_string(replica); }
  std::vector<std::string> paths() const { return {path(0), path(1), path(2)}; }
  void print(int replica, const std::string& text) const {
    std::ofstream(path(replica), std::ios::app) << text;
  }
  void print_all(const std::string& text) const {
    for (int replica = 0; replica < 3; ++replica) print(replica, text);
  }
};

std::string all_of(LogReader& reader) {
  std::string all;
  for (std::string text = reader.read(); !text.empty(); text = reader.read()) all += text;
  return all;
}

}  // namespace

TEST_CASE("logs: each byte once, from whichever replica has it", "[launcher][LOGS-1]") {
  const Logs logs;
  logs.print_all("one\n");
  LogReader reader(logs.paths());
  CHECK(all_of(reader) == "one\n");
  CHECK(all_of(reader).empty());
  logs.print(1, "two\n");  // the leader is behind
  CHECK(all_of(reader) == "two\n");
  logs.print(0, "two\nthree\n");
  logs.print(2, "two\nthree\n");
  CHECK(all_of(reader) == "three\n");
  logs.print(1, "three\n");
  CHECK(all_of(reader).empty());
}

TEST_CASE("logs: a replica that recovers prints nothing again", "[launcher][LOGS-1]") {
  const Logs logs;
  logs.print_all("0123456789");
  LogReader reader(logs.paths());
  CHECK(all_of(reader) == "0123456789");
  fs::resize_file(logs.path(0), 0);  // it runs all inputs again
  CHECK(all_of(reader).empty());
  logs.print(0, "01234");
  CHECK(all_of(reader).empty());
  logs.print(0, "56789abc");
  CHECK(all_of(reader) == "abc");
  fs::resize_file(logs.path(0), 0);
  fs::resize_file(logs.path(0), 12);  // it begins at a checkpoint
  logs.print(0, "cd");
  CHECK(all_of(reader) == "d");
}

TEST_CASE("logs: the hole of a recovered replica is read from another one", "[launcher][LOGS-1]") {
  const Logs logs;
  logs.print(1, "0123456789");
  logs.print(0, "");
  fs::resize_file(logs.path(0), 8);
  logs.print(0, "89ab");
  LogReader reader(logs.paths());
  CHECK(all_of(reader) == "0123456789ab");
  LogReader alone({logs.path(0)});
  CHECK(all_of(alone) == "89ab");
}

TEST_CASE("logs: bytes that were discarded are counted, also many of them", "[launcher][LOGS-1]") {
  const Logs logs;
  constexpr std::uintmax_t kLarge = 40ULL << 30;
  logs.print(0, "");
  logs.print(1, "");
  fs::resize_file(logs.path(0), kLarge + 8192);
  fs::resize_file(logs.path(1), kLarge);
  logs.print(0, "new\n");
  logs.print(1, std::string(8192, 'x') + "new\n");
  LogReader reader(logs.paths());
  CHECK(all_of(reader) == std::string(8192, 'x') + "new\n");
  CHECK(reader.take_missing() == kLarge);
  CHECK(reader.take_missing() == 0);
  LogReader alone({logs.path(0)});
  CHECK(all_of(alone) == "new\n");
  CHECK(alone.take_missing() == kLarge + 8192);
}

TEST_CASE("logs: the last bytes of a removed log are read", "[launcher][LOGS-1]") {
  const Logs logs;
  logs.print(0, "one\n");
  LogReader reader({logs.path(0)});
  CHECK(all_of(reader) == "one\n");
  logs.print(0, "the end\n");
  fs::remove(logs.path(0));
  CHECK(all_of(reader) == "the end\n");
  logs.print(0, "new\n");  // another group of the same name
  CHECK(all_of(reader) == "new\n");
}

TEST_CASE("logs: the next group begins at its start", "[launcher][LOGS-1]") {
  const Logs logs;
  logs.print_all("the first group\n");
  LogReader reader(logs.paths());
  CHECK(all_of(reader) == "the first group\n");
  for (int replica = 0; replica < 3; ++replica) fs::remove(logs.path(replica));
  logs.print(1, "new\n");
  CHECK(all_of(reader) == "new\n");
  logs.print(0, "new\n");
  logs.print(2, "new\nmore\n");
  CHECK(all_of(reader) == "more\n");
}

TEST_CASE("logs: a file that appears later is found, and skip() leaves the past out",
          "[launcher][LOGS-1]") {
  const Logs logs;
  LogReader reader(logs.paths());
  CHECK(all_of(reader).empty());
  logs.print(2, "one\n");
  CHECK(all_of(reader) == "one\n");
  logs.print_all("one\n");
  LogReader late(logs.paths());
  late.skip();
  CHECK(all_of(late).empty());
  logs.print(2, "three\n");
  CHECK(all_of(late) == "three\n");
}

}  // namespace crane::launcher
