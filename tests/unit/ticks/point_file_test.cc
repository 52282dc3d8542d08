// SPDX-License-Identifier: Apache-2.0
// GOAL    The tick points of a group outlive its processes, and a damaged line of the file loses
//         only its own point.
// METHOD  Files in a directory of the test.
// CHECKS  read_points(), write_points().
#include "proxy/ticks/point_file.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace crane;
using namespace crane::ticks;

namespace {

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/crane-points-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Directory() { std::filesystem::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string file() const { return path / "points"; }
  void write(const std::string& text) const { std::ofstream(file()) << text; }
  std::string text() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path path;
};

const std::vector<TickPoint> kPoints{{0x00ffeeddccbbaa99, 0x1234, 1400, 7, 1},
                                     {UINT64_MAX, UINT32_MAX, UINT32_MAX, 19, 0},
                                     {1, 0, 1, 5, 0}};

void check_equal(const std::vector<TickPoint>& points, const std::vector<TickPoint>& expected) {
  REQUIRE(points.size() == expected.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    CAPTURE(i);
    CHECK(std::memcmp(&points[i], &expected[i], sizeof(TickPoint)) == 0);
  }
}

}  // namespace

TEST_CASE("point_file: reading returns the points that were written", "[ticks]") {
  const Directory directory;
  std::string damaged;
  REQUIRE(write_points(directory.file(), kPoints).ok());
  check_equal(read_points(directory.file(), damaged), kPoints);
  CHECK(damaged.empty());
  CHECK(directory.text().substr(0, 31) == "00ffeeddccbbaa99 1234 7 1 1400\n");
  REQUIRE(write_points(directory.file(), {}).ok());
  CHECK(read_points(directory.file(), damaged).empty());
  CHECK(damaged.empty());
}

TEST_CASE("point_file: a missing file has no points", "[ticks]") {
  const Directory directory;
  std::string damaged;
  CHECK(read_points(directory.file(), damaged).empty());
  CHECK(damaged.empty());
}

TEST_CASE("point_file: a damaged line is reported, and the other lines are read", "[ticks]") {
  const Directory directory;
  const std::string good = "0000000000000001 0 5 0 1\n";
  for (const std::string bad :
       {"000000000000000g 10 5 0 1", "0000000000000000 10 5 0 1", "0000000000000002 10 5 2 1",
        "0000000000000002 10 5 0 0", "0000000000000002 10 5 0", "0000000000000002 100000000 5 0 1",
        "0000000000000002 10 5 0 4294967296", "a line"}) {
    CAPTURE(bad);
    directory.write(good + bad + "\n" + good);
    std::string damaged;
    CHECK(read_points(directory.file(), damaged).size() == 2);
    CHECK(damaged == bad);
  }
}

TEST_CASE("point_file: the old file stays if the new one cannot be written", "[ticks]") {
  const Directory directory;
  REQUIRE(write_points(directory.file(), kPoints).ok());
  const std::string before = directory.text();
  std::filesystem::create_directory(directory.file() + ".new");
  CHECK_FALSE(write_points(directory.file(), {}).ok());
  CHECK(directory.text() == before);
  CHECK_FALSE(write_points(directory.path / "none" / "points", kPoints).ok());
}

TEST_CASE("point_file: a file is replaced as a whole", "[ticks]") {
  const Directory directory;
  REQUIRE(write_points(directory.file(), kPoints).ok());
  std::ifstream old(directory.file());  // opened before the replacement
  REQUIRE(write_points(directory.file(), {}).ok());
  const std::string seen{std::istreambuf_iterator<char>(old), {}};
  CHECK(seen.size() > 31);
  CHECK(directory.text().empty());
  CHECK_FALSE(std::filesystem::exists(directory.file() + ".new"));
}
