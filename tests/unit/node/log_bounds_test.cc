// SPDX-License-Identifier: Apache-2.0
// GOAL    The logs of a replica are bounded, and keep the newest bytes at their offsets.
// METHOD  Files with a descriptor that stays open for appending, as a server's.
// CHECKS  LOG-BOUND-1
#include "proxy/host/log_bounds.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "checkpoint/descriptor.h"

namespace crane::node {
namespace {

constexpr std::uint64_t kKeep = 1 << 20, kMost = 2 << 20;

struct Log {
  std::string directory = "/tmp/crane-bounds-XXXXXX";
  std::string path;
  checkpoint::Descriptor fd;
  std::string all;

  Log() {
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    path = directory + "/server.log";
    fd = checkpoint::Descriptor(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    REQUIRE(fd);
  }
  ~Log() { std::filesystem::remove_all(directory); }
  void write(std::size_t bytes, char letter) {
    const std::string text(bytes, letter);
    REQUIRE(::write(fd.get(), text.data(), bytes) == static_cast<ssize_t>(bytes));
    all += text;
  }
  // Whether these bytes are the end of what was written.
  bool ends_with(const std::string& text) const { return all.ends_with(text); }
  std::uint64_t on_disk() const {
    struct stat s {};
    REQUIRE(::stat(path.c_str(), &s) == 0);
    return static_cast<std::uint64_t>(s.st_blocks) * 512;
  }
};

}  // namespace

TEST_CASE("a log loses its oldest bytes, and its writer continues at the same offsets",
          "[node][LOG-BOUND-1]") {
  Log log;
  LogBounds bounds({log.path, log.directory + "/absent"}, kKeep, kMost);
  log.write(kMost, 'a');
  bounds.step(1);
  CHECK(end_of_log(log.path, kMost).size() == kMost);  // nothing is discarded yet
  log.write(1, 'b');
  bounds.step(2);
  CHECK(end_of_log(log.path, 2 * kMost).size() == kMost + 1);  // it looks at intervals only
  for (std::int64_t i = 1; i < 8; ++i) {
    log.write(kKeep, static_cast<char>('c' + i));
    bounds.step(i * LogBounds::kEveryNs + 1);
    CHECK(std::filesystem::file_size(log.path) == log.all.size());
    CHECK(log.on_disk() <= kMost + 4096);
    const std::string kept = end_of_log(log.path, kKeep);
    CHECK(kept.size() == kKeep);
    CHECK(log.ends_with(kept));
  }
  // Without the hole.
  const std::string rest = end_of_log(log.path, log.all.size());
  CHECK(rest.size() < kMost + 4096);
  CHECK(log.ends_with(rest));
}

TEST_CASE("what is discarded of a log", "[node][LOG-BOUND-1]") {
  CHECK(to_discard(0, 0, 10'000, 20'000) == 0);
  CHECK(to_discard(20'000, 20'480, 10'000, 20'000) == 0);
  CHECK(to_discard(20'481, 20'992, 10'000, 20'000) == 8192);
  CHECK(to_discard(1'000'000, 20'000, 10'000, 20'000) == 0);  // the rest is a hole already
  // A length within the bound stays, whatever the file system allocates.
  CHECK(to_discard(20'000, 65'536, 10'000, 20'000) == 0);
}

}  // namespace crane::node
