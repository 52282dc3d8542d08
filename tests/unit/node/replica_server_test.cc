// SPDX-License-Identifier: Apache-2.0
// GOAL    Server output is hashed before a client receives it, and the server's end is noted once.
// METHOD  A ReplicaServer on a real segment without processes; the test is the server's main
//         thread.
// CHECKS  SERVER-1, GATHER-1; a point at which no thread runs; the wrong bit of --test-only-flip.
#include "proxy/host/replica_server.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dmt/scheduler.h"

using namespace crane;
using namespace crane::node;

namespace {

struct World : ReplicaServer::Owner {
  std::string directory = "/tmp/crane-server-XXXXXX";
  Config config;
  Agreed agreed{};
  NodeMode mode;
  std::unique_ptr<ReplicaServer> server;
  std::string received;                // bytes that clients received
  std::vector<std::uint64_t> counted;  // bytes in the hash when clients received them
  std::vector<std::string> calls;      // calls by which clients received them, "|" after each piece
  std::vector<std::uint64_t> unread;   // unread position of the ring when clients received them

  World() {
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    config.dir = directory;
    config.shm_dir = directory + "/shm";
    config.libcrane = directory + "/libcrane.so";
    std::ofstream(config.libcrane) << "a library";
    std::filesystem::create_directories(config.replica_dir());
  }
  virtual ~World() {
    server.reset();
    std::filesystem::remove_all(directory);
  }
  void woke() override {}
  void server_started(pid_t) override {}
  void server_ended(int) override {}
  void server_failed(ExitStatus, const std::string&) override {}
  void process_killed(std::uint32_t, std::uint32_t) override {}
  void dump_prepared() override {}
  void dump_ended(const std::string&, const std::string&) override {}
  void drain_server() override {}
  void handle_server_output(const OutputHeader& header, proxy::Pieces pieces, bool last) override {
    counted.push_back(server->outputs().bytes());
    std::string what = std::to_string(header.conn) + ":";
    for (const std::span<const std::byte> piece : pieces) {
      const std::string text(reinterpret_cast<const char*>(piece.data()), piece.size());
      received += text;
      what += text + "|";
    }
    if (last) what += "end";
    calls.push_back(header.type == OutputType::kBytes ? what : "other");
    unread.push_back(server->layout().header.output.read_position.load());
  }
  void open() {
    server = std::make_unique<ReplicaServer>(config, mode, *this);
    std::string why;
    const StartingPoint start(config, agreed, true);
    const auto failed = server->open(start, why);
    INFO(why);
    REQUIRE_FALSE(failed);
  }
  void write(const std::string& text) {
    server->handle_output({OutputType::kBytes, {}, 1, text.size(), 0},
                          std::as_bytes(std::span(text)));
  }
  // Writes a record through the ring, as the server does.
  void emit(OutputType type, std::uint64_t conn, const std::string& text = "") {
    dmt::Layout& w = server->layout();
    const bool bytes = type == OutputType::kBytes;
    const OutputHeader header{type, {}, conn, bytes ? written[conn] : 0, 0};
    if (bytes) written[conn] += text.size();
    const auto size = static_cast<std::uint32_t>(sizeof header + text.size());
    const std::span<std::byte> room = dmt::reserve_output(w, size);
    std::memcpy(room.data(), &header, sizeof header);
    std::memcpy(room.data() + sizeof header, text.data(), text.size());
    dmt::commit_output(w, size);
  }
  std::map<std::uint64_t, std::uint64_t> written;
};

}  // namespace

TEST_CASE_METHOD(World, "clients receive bytes only after they were hashed", "[server][SERVER-1]") {
  open();
  write("hello, ");
  write("world");
  CHECK(received == "hello, world");
  CHECK(counted == std::vector<std::uint64_t>{7, 12});
}

TEST_CASE_METHOD(World, "consecutive output of a connection goes to its client in one call",
                 "[server][SERVER-1][GATHER-1]") {
  open();
  emit(OutputType::kBytes, 1, "head ");
  emit(OutputType::kAdmitted, 9);
  emit(OutputType::kBytes, 1, "body");
  emit(OutputType::kBytes, 2, "another's");
  emit(OutputType::kBytes, 1, "more");
  emit(OutputType::kClose, 1);
  emit(OutputType::kBytes, 2, "last");
  const RingLayout& ring = server->layout().header.output;
  CHECK(server->drain() == 7);
  CHECK(calls == std::vector<std::string>{"other", "1:head |body|", "2:another's|", "1:more|end",
                                          "other", "2:last|"});
  CHECK(counted[1] >= 9);
  CHECK(ring.read_position.load() == ring.write_position.load());
  CHECK(unread[1] == 0);  // the client's bytes stayed in the ring until it had them
  CHECK(unread.back() < ring.write_position.load());
  CHECK(server->drain() == 0);
}

TEST_CASE_METHOD(World, "the number of gathered bytes and pieces is limited",
                 "[server][GATHER-1]") {
  open();
  const std::string piece(60'000, 'x');
  for (std::size_t sent = 0; sent < 2 * kGatheredBytesMost; sent += piece.size()) {
    emit(OutputType::kBytes, 1, piece);
  }
  server->drain();
  CHECK(calls.size() == 2);
  CHECK(calls[0].size() < kGatheredBytesMost + piece.size());
  calls.clear();
  for (std::size_t i = 0; i < proxy::kPiecesMost + 1; ++i) emit(OutputType::kBytes, 1, "x");
  server->drain();
  CHECK(calls.size() == 2);
  CHECK(calls[1] == "1:x|");
}

TEST_CASE_METHOD(World, "the wrong bit appears once, for the hash and for clients", "[server]") {
  config.test_only_flip = true;
  open();
  const std::string text(30'000, 'x');
  write(text);
  CHECK(received == text);
  received.clear();
  write(text);
  CHECK(received.back() == static_cast<char>('x' ^ 1));
  received.clear();
  write(text);
  CHECK(received == text);
}

TEST_CASE_METHOD(World, "while output is held, clients receive nothing and no rest is reported",
                 "[server][SLICE-4]") {
  open();
  dmt::SchedulerState& s = server->layout().scheduler;
  s.holder = dmt::kHolderIdle;
  server->scheduler_link().hold(true);
  emit(OutputType::kBytes, 1, "hello");
  CHECK(server->drain() == 0);
  CHECK(received.empty());
  CHECK_FALSE(server->scheduler_link().outputs_waiting());
  CHECK_FALSE(server->scheduler_link().admit());
  CHECK_FALSE(server->rest_point());
  server->scheduler_link().hold(false);
  CHECK(server->scheduler_link().outputs_waiting());
  CHECK(server->drain() == 1);
  CHECK(received == "hello");
  CHECK(server->rest_point());
}

TEST_CASE_METHOD(World, "the schedule is at a rest point while no thread has the turn",
                 "[server]") {
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
  server = std::make_unique<ReplicaServer>(config, mode, *this);
  std::string why;
  const StartingPoint start(config, agreed, true);
  CHECK(server->open(start, why) == ExitStatus::kNoSegment);
  CHECK(why.find(config.shm_dir) != std::string::npos);
  CHECK_FALSE(server->opened());
  CHECK(server->pid() == -1);
}

TEST_CASE_METHOD(World, "a recording is complete if the server has executed all its input",
                 "[server]") {
  const bool whole = GENERATE(true, false);
  config.record = directory + "/record";
  open();
  write("an answer");
  server->stop(true, whole);
  const auto recorded = proxy::Recording::open(config.record + "/replica-0.out");
  REQUIRE(recorded.ok());
  CHECK((recorded.value().end() == proxy::RecordingEnd::kWhole) == whole);
}
