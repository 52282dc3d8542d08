// SPDX-License-Identifier: Apache-2.0
// UNIT    runtime/launcher/run/server_output.h
// GOAL    The servers' output appears once, whichever replica is ahead or dies (SHOWN-1).
// CHECKS  The fastest log changes; a log that begins with a hole; a log that is reopened.
#include "runtime/launcher/run/server_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using crane::launcher::ServerOutput;

namespace {

struct Logs {
  std::string directory;
  int ends[2] = {-1, -1};

  Logs() {
    char path[] = "/tmp/crane-output-XXXXXX";
    REQUIRE(::mkdtemp(path) != nullptr);
    directory = path;
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  }
  ~Logs() {
    for (const int fd : ends) ::close(fd);
    std::filesystem::remove_all(directory);
  }
  Logs(const Logs&) = delete;
  Logs& operator=(const Logs&) = delete;
  std::string path(int replica) const { return directory + "/" + std::to_string(replica); }
  void print(int replica, const std::string& text) const {
    std::ofstream(path(replica), std::ios::app) << text;
  }
  // Returns the output passed on since the last call.
  std::string shown() const {
    char buffer[4096];
    const ssize_t n = ::read(ends[0], buffer, sizeof buffer);
    return {buffer, n > 0 ? static_cast<std::size_t>(n) : 0};
  }
};

// Fills the pipe, as happens when its reader is stopped.
std::size_t fill(int pipe) {
  const std::string some(4096, '#');
  std::size_t bytes = 0;
  for (ssize_t n = 0; (n = ::write(pipe, some.data(), some.size())) > 0;) {
    bytes += static_cast<std::size_t>(n);
  }
  return bytes;
}

bool rings(const ServerOutput& output) {
  pollfd fd{output.fd(), POLLIN, 0};
  return ::poll(&fd, 1, 0) == 1;
}

}  // namespace

TEST_CASE("server output: each byte appears once, as the fastest replica writes it",
          "[launcher][SHOWN-1]") {
  const Logs logs;
  ServerOutput output(logs.ends[1]);
  output.open();
  for (int i = 0; i < 3; ++i) output.watch(i, logs.path(i));
  CHECK_FALSE(rings(output));
  logs.print(1, "one\n");
  CHECK(rings(output));
  output.show();
  CHECK(logs.shown() == "one\n");
  logs.print(0, "one\ntwo\n");
  output.show();
  CHECK(logs.shown() == "two\n");
  logs.print(1, "two\n");
  logs.print(2, "one\n");  // far behind
  output.show();
  CHECK(logs.shown().empty());
  CHECK_FALSE(rings(output));
  // The two replicas that were ahead are gone.
  logs.print(2, "two\nthree\n");
  output.show();
  CHECK(logs.shown() == "three\n");
}

TEST_CASE("server output: output that an earlier crane-run showed is not shown again",
          "[launcher][SHOWN-1]") {
  const Logs logs;
  logs.print(0, "before\n");
  logs.print(1, "before\nmore\n");
  ServerOutput output(logs.ends[1]);
  output.open();
  output.take_over(0, logs.path(0));
  output.take_over(1, logs.path(1));
  output.show();
  CHECK(logs.shown().empty());
  logs.print(0, "more\nafter\n");
  output.show();
  CHECK(logs.shown() == "after\n");
}

TEST_CASE("server output: the log of a replica that begins at a checkpoint starts with a hole",
          "[launcher][SHOWN-1]") {
  const Logs logs;
  ServerOutput output(logs.ends[1]);
  output.open();
  output.watch(0, logs.path(0));
  output.watch(1, logs.path(1));
  logs.print(0, "before\n");
  output.show();
  CHECK(logs.shown() == "before\n");
  // Replica 0 is lost. Replica 1 recovers from a checkpoint after "before
  // more
  // ". The last part was never shown: it is a hole in the log of replica 1.
  std::filesystem::resize_file(logs.path(1), 12);
  logs.print(1, "after\n");
  output.watch(1, logs.path(1));
  output.show();
  CHECK(logs.shown() == "after\n");
}

TEST_CASE("server output: bytes that were discarded before they were shown are counted",
          "[launcher][SHOWN-1]") {
  const Logs logs;
  ServerOutput output(logs.ends[1]);
  output.open();
  output.watch(0, logs.path(0));
  logs.print(0, "before\n");
  output.show();
  CHECK(logs.shown() == "before\n");
  std::filesystem::resize_file(logs.path(0), 100'007);
  logs.print(0, "after\n");
  output.show();
  CHECK(logs.shown() == "after\n");
  CHECK(output.take_missing() >= 90'000);
  CHECK(output.take_missing() == 0);
}

TEST_CASE("server output: a stopped reader does not block crane-run, and gets every byte later",
          "[launcher][SHOWN-1]") {
  const Logs logs;
  ServerOutput output(logs.ends[1]);
  output.open();
  output.watch(0, logs.path(0));
  std::size_t before = fill(logs.ends[1]);
  // The process that shares the pipe expects blocking writes.
  REQUIRE(::fcntl(logs.ends[1], F_SETFL, 0) == 0);
  std::string all;
  for (int i = 0; i < 20'000; ++i) all += std::to_string(i) + "\n";
  logs.print(0, all);
  output.show();
  CHECK(output.waits());
  std::string received;
  while (before > 0) before -= logs.shown().size();
  for (int i = 0; received.size() < all.size() && i < 10'000; ++i) {
    output.show();
    received += logs.shown();
  }
  CHECK(received == all);
  CHECK_FALSE(output.waits());
}
