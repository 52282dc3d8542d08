// SPDX-License-Identifier: Apache-2.0
// GOAL    The disk sizes in the status are real, and the growth is that between checkpoints.
// METHOD  Directories of known content; manifests of known times and sizes.
// CHECKS  The numbers, unknown values, the lines for people.
#include "runtime/launcher/ctl/sizes.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/control/schema.h"

using namespace crane;
using namespace crane::launcher;
using checkpoint::Kept;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct Home {
  std::string path;
  Home() {
    char pattern[] = "/var/tmp/crane-sizes-XXXXXX";
    path = mkdtemp(pattern);
  }
  ~Home() { fs::remove_all(path); }
  void spill(const std::string& name, std::size_t bytes) const {
    fs::create_directories(fs::path(path + "/" + name).parent_path());
    std::ofstream(path + "/" + name, std::ios::binary) << std::string(bytes, 'x');
  }
};

Kept kept(std::int64_t time, std::uint64_t files, std::uint64_t cursor, const char* log = "log") {
  Kept one;
  one.listed.manifest.time = time;
  one.listed.manifest.cursor = cursor;
  one.listed.manifest.log_digest = log;
  one.listed.manifest.files = {{"images.pack", 1, 1, 7}, {"upper.pack", 1, 1, files}};
  return one;
}

}  // namespace

TEST_CASE("sizes: bytes on disk are counted, holes and further links are not", "[ctl]") {
  const Home home;
  CHECK(bytes_on_disk(home.path + "/absent") == 0);
  home.spill("d/one", 100'000);
  const auto one = bytes_on_disk(home.path + "/d");
  REQUIRE(one);
  CHECK(*one >= 100'000);
  CHECK(*one < 200'000);
  fs::create_hard_link(home.path + "/d/one", home.path + "/d/again");
  REQUIRE(truncate((home.path + "/d/hole").c_str(), 0) != 0);
  std::ofstream(home.path + "/d/hole").flush();
  REQUIRE(truncate((home.path + "/d/hole").c_str(), 1 << 30) == 0);
  CHECK(*bytes_on_disk(home.path + "/d") < 200'000);
  CHECK_FALSE(bytes_on_disk(home.path + "/d", 2));
}

TEST_CASE("sizes: growth is between the checkpoints of one log", "[ctl]") {
  CHECK_FALSE(growth_of({}));
  CHECK_FALSE(growth_of({kept(100, 5, 5)}));
  CHECK_FALSE(growth_of({kept(100, 5, 5), kept(100, 1, 1)}));
  const auto growth = growth_of({kept(1900, 3000, 7000), kept(1000, 9, 9), kept(100, 4000, 1000),
                                 kept(1, 1, 1, "of another group")});
  REQUIRE(growth);
  CHECK(growth->seconds == 1800);
  CHECK(growth->files_bytes == -2000);
  CHECK(growth->log_bytes == 12000);
}

TEST_CASE("sizes: a line for people contains the known values", "[ctl]") {
  const Home home;
  home.spill("r0/upper/srv/data", 1'000'000);
  home.spill("r0/checkpoints/.lock", 10);
  Json summary{{"replicas", {{{"replica", 0}}, {{"replica", 1}}}}};
  CHECK(sizes_text(summary).empty());
  add_sizes(summary, home.path);
  const std::string text = sizes_text(summary);
  INFO(text);
  CHECK(summary["replicas"][0]["disk"]["store_bytes"] == 0);
  CHECK_FALSE(summary["replicas"][1].contains("disk"));
  CHECK(text.find("disk: replica 0: files 1.0 MB, checkpoints ") == 0);
  CHECK(control::number_in(summary, "free_bytes") > 0);
  summary["free_bytes"] = kRoomLeast;
  CHECK(sizes_text(summary).find("room:") == std::string::npos);
  summary["free_bytes"] = 1'200'000;
  CHECK(sizes_text(summary).find("room: only 1.2 MB are free") != std::string::npos);
  summary["growth"] = {
      {"over_seconds", 60}, {"files_bytes_per_hour", -2500}, {"log_bytes_per_hour", 1'500'000}};
  summary["replicas"][0]["disk"]["files_bytes"] = nullptr;
  const std::string more = sizes_text(summary);
  INFO(more);
  CHECK(more.find("files unknown") != std::string::npos);
  CHECK(more.find("growth: files -2.5 kB, log +1.5 MB an hour, by checkpoints of 60 s\n") !=
        std::string::npos);
}
