// SPDX-License-Identifier: Apache-2.0
// GOAL    However a replica ends, the next start knows the position of its files in the log.
// METHOD  LastingFiles in a directory of the test, whose position another reader reads.
// CHECKS  LAST-3; how an end is recorded; files that are not kept leave nothing.
#include "proxy/host/recovery/lasting_files.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace crane;
using namespace crane::node;
namespace fs = std::filesystem;

namespace {

struct World {
  Config config;
  World() {
    char name[] = "/tmp/crane-lasting-XXXXXX";
    config.dir = ::mkdtemp(name);
    config.replica = 1;
    fs::create_directories(config.replica_dir());
  }
  ~World() { fs::remove_all(config.dir); }
  std::optional<checkpoint::Position> position() const {
    return checkpoint::read_position(config.replica_dir());
  }
};

}  // namespace

TEST_CASE_METHOD(World, "the position is written as soon as it moved", "[lasting][LAST-3]") {
  LastingFiles files(config, true);
  CHECK(files.begin() == config.left_dir());
  CHECK_FALSE(position());
  files.server_started(Index{3}, 30);
  files.move(Index{4}, 44);
  REQUIRE(position());
  CHECK(position()->index == 4);
  CHECK(position()->clock == 44);
  CHECK(position()->end == checkpoint::Position::kNone);  // no orderly end yet
}

TEST_CASE_METHOD(World, "a stop and the server's own end are distinguished", "[lasting]") {
  LastingFiles files(config, true);
  files.server_started(Index{3}, 30);
  SECTION("stopped") {
    files.end(Index{5}, 50, false);
    CHECK(position()->end == checkpoint::Position::kStopped);
  }
  SECTION("ended") {
    files.end(Index{5}, 50, true);
    CHECK(position()->end == checkpoint::Position::kEnded);
  }
  CHECK(position()->index == 5);
}

TEST_CASE_METHOD(World, "files of the previous process are removed", "[lasting]") {
  fs::create_directories(config.left_dir());
  std::ofstream(config.left_dir() + "/old") << "x";
  LastingFiles files(config, true);
  (void)files.begin();
  CHECK_FALSE(fs::exists(config.left_dir()));
}

TEST_CASE_METHOD(World, "files that are not kept leave no position", "[lasting]") {
  fs::create_directories(config.left_dir());
  LastingFiles files(config, false);
  CHECK(files.begin().empty());
  files.server_started(Index{3}, 30);
  files.end(Index{4}, 40, false);
  CHECK_FALSE(position());
  CHECK(fs::exists(config.left_dir()));  // the test must not remove it
}
