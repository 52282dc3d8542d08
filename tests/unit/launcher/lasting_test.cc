// SPDX-License-Identifier: Apache-2.0
// GOAL    Kept data of a group are found again, those of the furthest replica are used, and nothing
//         is lost or mixed when a start fails.
// METHOD  Starts over one directory; between them replicas leave files at different positions.
// CHECKS  The content of the base; the messages; what a refused start leaves.
#include "runtime/launcher/lasting.h"

#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "checkpoint/base.h"

using namespace crane;
using namespace crane::launcher;
using checkpoint::Position;
using checkpoint::PositionFile;
namespace fs = std::filesystem;

namespace {

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

struct Home {
  std::string scratch, data, dir;
  Options options;

  Home() {
    char pattern[] = "/var/tmp/crane-lasting-XXXXXX";
    scratch = mkdtemp(pattern);
    data = scratch + "/srv/db";
    spill(data + "/file", "the machine's");
    options.name = "lasting-" + std::to_string(getpid());
    options.dir = scratch + "/groups";
    options.replicas = 3;
    options.data = {data};
    options.program = {"server"};
    dir = options.dir + "/" + options.name;
  }
  ~Home() { fs::remove_all(scratch); }

  // Runs a start that ends at once. Then base() returns the file in the base, and `printed` the
  // messages.
  Outcome start(std::string& printed, std::string* log_id = nullptr) {
    setup::GroupDirectories directories;
    if (auto p = directories.create(options.place()); !p) return p;
    const std::string err = scratch + "/err";
    const int saved = dup(2);
    REQUIRE(freopen(err.c_str(), "w", stderr) != nullptr);
    Lasting lasting(options);
    const Outcome p = lasting.open();
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    printed = slurp(err);
    if (log_id != nullptr) *log_id = lasting.log_id();
    return p;
  }
  std::string base() const { return slurp(dir + "/base" + data + "/file"); }
  void leave(int replica, const char* where, const std::string& text, std::uint64_t index,
             Position::End end) {
    const std::string home = dir + "/r" + std::to_string(replica);
    spill(home + "/" + where + data + "/file", text);
    fs::remove(home + "/position");
    PositionFile file;
    REQUIRE(file.open(home).ok());
    file.move(index, index * 10);
    file.end(end);
  }
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("lasting: data begin as those of the machine, then as the furthest replica left them",
          "[root]") {
  Home h;
  std::string printed;
  REQUIRE(h.start(printed).ok());
  CHECK(h.base() == "the machine's");
  char opaque = 0;
  CHECK(getxattr((h.dir + "/base" + h.data).c_str(), "trusted.overlay.opaque", &opaque, 1) == 1);
  CHECK(opaque == 'y');

  SECTION("in order") {
    for (int i = 0; i < 3; ++i) h.leave(i, "left", "new", 7, Position::kEnded);
    REQUIRE(h.start(printed).ok());
    CHECK(h.base() == "new");
    CHECK(has(printed, "equal on all replicas"));
    CHECK_FALSE(fs::exists(h.dir + "/r1/left"));
    CHECK_FALSE(fs::exists(h.dir + "/r1/position"));
    REQUIRE(h.start(printed).ok());  // nothing was left: unchanged
    CHECK(h.base() == "new");
  }
  SECTION("killed: the furthest replica, wherever its files are") {
    h.leave(0, "left", "older", 5, Position::kNone);
    h.leave(1, "upper", "newest", 9, Position::kNone);
    REQUIRE(h.start(printed).ok());
    CHECK(h.base() == "newest");
    CHECK(has(printed, "replica 1 left it at log index 9"));
    CHECK(has(printed, "replica 0 was at 5"));
    CHECK(has(printed, "replica 2 has none"));
    CHECK(has(printed, "did not stop cleanly"));
  }
  SECTION("files of a server that was being restarted") {
    h.leave(2, "upper", "half a copy", 9, Position::kNone);
    spill(h.dir + "/r2/kept-9" + h.data + "/file", "whole");
    REQUIRE(h.start(printed).ok());
    CHECK(h.base() == "whole");
  }
  SECTION("files without a position are half a copy of the base") {
    spill(h.dir + "/r0/upper" + h.data + "/file", "half");
    REQUIRE(h.start(printed).ok());
    CHECK(h.base() == "the machine's");
  }
  SECTION("a replica that differs at the same position is outvoted and reported") {
    h.leave(0, "left", "odd one", 7, Position::kEnded);
    for (int i = 1; i < 3; ++i) h.leave(i, "left", "good", 7, Position::kEnded);
    REQUIRE(h.start(printed).ok());
    CHECK(h.base() == "good");
    CHECK(has(printed, "replica 0 has other files"));
  }
}

TEST_CASE("lasting: the machine's directory is neither written nor mixed in", "[root]") {
  Home h;
  std::string text;
  REQUIRE(h.start(text).ok());
  for (int i = 0; i < 3; ++i) h.leave(i, "left", "new", 7, Position::kEnded);
  spill(h.data + "/file", "the machine's, later");
  spill(h.data + "/another", "x");
  REQUIRE(h.start(text).ok());
  CHECK(has(text, "has changed since"));
  CHECK(h.base() == "new");
  CHECK_FALSE(fs::exists(h.dir + "/base" + h.data + "/another"));
  CHECK(slurp(h.data + "/file") == "the machine's, later");
  fs::remove_all(h.data);  // it is no longer needed
  REQUIRE(h.start(text).ok());
  CHECK(h.base() == "new");
}

TEST_CASE("lasting: with a log on disk the base stays, and the log keeps its identity", "[root]") {
  Home h;
  h.options.durability = "disk";
  std::string printed, first, second;
  REQUIRE(h.start(printed, &first).ok());
  spill(h.dir + "/store/r0/file", "a log");
  h.leave(1, "upper", "newer", 9, Position::kNone);
  REQUIRE(h.start(printed, &second).ok());
  CHECK(first == second);
  CHECK(h.base() == "the machine's");  // LAST-1
  CHECK(fs::exists(h.dir + "/store/r0/file"));

  const auto refused = [&](const std::string& part, Status status = Status::kUsage) {
    const Outcome p = h.start(printed);
    CHECK(status_of(p) == status);
    CHECK(has(p.error().text, part));
    CHECK(fs::exists(h.dir + "/store/r0/file"));
  };
  SECTION("other durability") {
    h.options.durability = "memory";
    refused("add --durability disk");
  }
  SECTION("other replicas") {
    h.options.replicas = 5;
    refused("it has 3 replicas");
  }
  SECTION("other data") {
    h.options.data = {h.scratch};
    refused("its log began with --data");
  }
  SECTION("another command") {
    h.options.program = {"server", "--otherwise"};
    refused("its log was written by another command: server", Status::kOtherCommand);
    refused("crane-ctl upgrade ", Status::kOtherCommand);
    refused(" -- server --otherwise switches to this one", Status::kOtherCommand);
  }
  SECTION("another shell") {
    setenv("CRANE_TEST_OF_SHELLS", "x", 1);
    REQUIRE(h.start(printed).ok());
    CHECK(getenv("CRANE_TEST_OF_SHELLS") == nullptr);
  }
  SECTION("no logs") {
    fs::remove_all(h.dir + "/store");
    spill(h.dir + "/member-0", "x");
    const Outcome p = h.start(printed);
    CHECK(has(p.error().text, "the logs of all replicas are gone"));
  }
  SECTION("neither data nor disk") {
    h.options.durability = "memory";
    h.options.data.clear();
    setup::GroupDirectories directories;
    const Outcome p = directories.create(h.options.place());
    CHECK(status_of(p) == Status::kGroupExists);
    CHECK(fs::exists(h.dir + "/store/r0/file"));
  }
}

TEST_CASE("lasting: impossible data directories are refused and leave nothing", "[root]") {
  Home h;
  std::string text;
  h.options.data = {h.scratch + "/nothing"};
  CHECK(status_of(h.start(text)) == Status::kDirectory);
  CHECK_FALSE(fs::exists(h.dir));
  h.options.data = {h.scratch};
  const Outcome p = h.start(text);
  CHECK(has(p.error().text, "is inside it"));
  CHECK_FALSE(fs::exists(h.dir));
  for (const char* wrong : {"/", "/run/x", "/proc/1", "/sys", "/dev/shm"}) {
    std::vector<std::string> data{wrong};
    CHECK(status_of(resolve_data(data, true)) == Status::kUsage);
  }
  std::vector<std::string> nested{"/srv/a", "/srv/a/b"};
  CHECK(status_of(resolve_data(nested, true)) == Status::kUsage);
  std::vector<std::string> fine{"/srv/b", "/srv/a/../a", "/srv/b"};
  CHECK(resolve_data(fine, true).ok());
  CHECK(fine == std::vector<std::string>{"/srv/a", "/srv/b"});
  CHECK(status_of(resolve_data(fine, false)) == Status::kUsage);
}
