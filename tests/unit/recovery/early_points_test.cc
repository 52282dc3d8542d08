// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica begins again with the early points of its group's log, and only if its server
//         had them.
// CHECKS  SLICE-4; notes are read; those of another log or in a damaged file are not.
#include "proxy/host/recovery/early_points.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "dmt/slices.h"

using namespace crane;
using namespace crane::node;

namespace {

EarlyPoint point_at(std::uint64_t clock, std::uint32_t offset = 7) {
  return {{0xffff'ffff'ffff'fff1, offset, 1000, 5, 1}, clock};
}

struct Fixture {
  Fixture() {
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    config.dir = directory;
    config.group = "a group";
    config.log_id = 77;
    std::filesystem::create_directories(config.replica_dir());
  }
  std::string file() const { return config.replica_dir() + "/early_points"; }

  ~Fixture() { std::filesystem::remove_all(directory); }

  std::string directory = "/tmp/crane-early-XXXXXX";
  Config config;
};

}  // namespace

TEST_CASE("early points: the next process reads what was noted", "[recovery][slices]") {
  Fixture f;
  CHECK(noted_early_points(f.config).empty());
  REQUIRE(note_early_point(f.config, point_at(10)).ok());
  REQUIRE(note_early_point(f.config, point_at(20, 8)).ok());
  const auto noted = noted_early_points(f.config);
  REQUIRE(noted.size() == 2);
  CHECK(noted[0].clock == 10);
  CHECK(noted[1].clock == 20);
  CHECK(noted[1].point.offset == 8);
  CHECK(noted[1].point.build == 0xffff'ffff'ffff'fff1);
  CHECK(noted[1].point.dead_flags == 1);
}

TEST_CASE("early points: points of another log, or of a damaged file, are not used",
          "[recovery][slices]") {
  Fixture f;
  REQUIRE(note_early_point(f.config, point_at(10)).ok());
  SECTION("another log") { f.config.log_id = 78; }
  SECTION("damaged") { std::ofstream(f.file()) << "{\"log\": 3"; }
  SECTION("empty") { std::ofstream(f.file()) << ""; }
  CHECK(noted_early_points(f.config).empty());
  REQUIRE(note_early_point(f.config, point_at(30)).ok());
  CHECK(noted_early_points(f.config).size() == 1);
}

TEST_CASE("early points: a missing directory is an error that ends the node",
          "[recovery][slices]") {
  Fixture f;
  std::filesystem::remove_all(f.config.replica_dir());
  CHECK_FALSE(note_early_point(f.config, point_at(10)).ok());
}

TEST_CASE("early points: a server that passed the clock without its point cannot continue",
          "[recovery][slices][SLICE-4]") {
  NodeState state;
  const std::vector<EarlyPoint> noted{point_at(10)};
  state.clock = 10;
  CHECK(first_missing(state, noted) == nullptr);
  state.clock = 11;
  REQUIRE(first_missing(state, noted) == &noted[0]);
  state.early = {point_at(10, 8), point_at(9)};
  CHECK(first_missing(state, noted) == &noted[0]);
  state.early.push_back(point_at(10));
  CHECK(first_missing(state, noted) == nullptr);
}

TEST_CASE("early points: a server gets those of its checkpoint and those that were noted",
          "[recovery][slices][SLICE-4]") {
  void* const memory = ::mmap(nullptr, sizeof(dmt::Layout), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  dmt::Layout& layout = *static_cast<dmt::Layout*>(memory);
  NodeState state;
  state.clock = 15;
  state.early = {point_at(10)};
  put_early_points(layout, state, std::vector{point_at(10), point_at(20, 8)});
  CHECK(layout.early_points.used == 2);
  CHECK(layout.early_points.waiting == 2);  // the second
  CHECK(dmt::has_early_point(layout, point_at(10)));
  CHECK(dmt::has_early_point(layout, point_at(20, 8)));
  ::munmap(memory, sizeof(dmt::Layout));
}
