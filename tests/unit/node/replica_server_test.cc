// SPDX-License-Identifier: Apache-2.0
// GOAL    What a server puts out is hashed before a client hears of it, and its end is noted once.
// METHOD  A ReplicaServer on a real segment without processes; the test is the server's main
// thread. CHECKS  SERVER-1; a point at which nothing runs; the wrong bit of --test-only-flip.
#include "proxy/node/replica_server.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

using namespace crane;
using namespace crane::node;

namespace {

struct World {
  std::string directory = "/tmp/crane-server-XXXXXX";
  Config config;
  Agreed agreed{};
  NodeMode mode;
  std::unique_ptr<ReplicaServer> server;
  std::string heard;                   // by clients
  std::vector<std::uint64_t> counted;  // bytes in the hash when they heard it

  World() {
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    config.dir = directory;
    config.shm_dir = directory + "/shm";
    config.libcrane = directory + "/libcrane.so";
    std::ofstream(config.libcrane) << "a library";
    std::filesystem::create_directories(config.replica_dir());
  }
  ~World() {
    server.reset();
    std::filesystem::remove_all(directory);
  }
  void open() {
    server = std::make_unique<ReplicaServer>(
        config, mode,
        [this](const OutputHeader&, std::span<const std::byte> bytes) {
          counted.push_back(server->outputs().bytes());
          heard.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        },
        ServerMonitorCallbacks{});
    std::string why;
    const StartingPoint start(config, agreed, true);
    const auto failed = server->open(start, why);
    INFO(why);
    REQUIRE_FALSE(failed);
  }
  void write(const std::string& text) {
    server->put_out({OutputType::kBytes, {}, 1, text.size(), 0}, std::as_bytes(std::span(text)));
  }
};

}  // namespace

TEST_CASE_METHOD(World, "clients hear what was hashed", "[server][SERVER-1]") {
  open();
  write("hello, ");
  write("world");
  CHECK(heard == "hello, world");
  CHECK(counted == std::vector<std::uint64_t>{7, 12});
}

TEST_CASE_METHOD(World, "the wrong bit is there once, for the hash and for clients", "[server]") {
  config.test_only_flip = true;
  open();
  const std::string text(30'000, 'x');
  write(text);
  CHECK(heard == text);
  heard.clear();
  write(text);
  CHECK(heard.back() == static_cast<char>('x' ^ 1));
  heard.clear();
  write(text);
  CHECK(heard == text);
}

TEST_CASE_METHOD(World, "the schedule rests while no thread has the turn", "[server]") {
  open();
  dmt::SchedulerState& s = server->layout().scheduler;
  s.applied_index = 7;
  s.clock = 99;
  s.holder = dmt::kHolderIdle;
  const auto rest = server->rest_point();
  REQUIRE(rest);
  CHECK(rest->index == 7);
  CHECK(rest->clock == 99);
  s.holder = 3;
  CHECK_FALSE(server->rest_point());
}

TEST_CASE_METHOD(World, "without a segment there is no server", "[server]") {
  config.libcrane = "/nonexistent/libcrane.so";
  server = std::make_unique<ReplicaServer>(
      config, mode, [](const OutputHeader&, std::span<const std::byte>) {},
      ServerMonitorCallbacks{});
  std::string why;
  const StartingPoint start(config, agreed, true);
  CHECK(server->open(start, why) == ExitStatus::kNoSegment);
  CHECK(why.find(config.shm_dir) != std::string::npos);
  CHECK_FALSE(server->opened());
  CHECK(server->pid() == -1);
}
