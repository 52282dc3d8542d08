// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/file_names.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dmt/inodes.h"
#include "tests/unit/node/segment_memory.h"

using namespace crane;
using namespace crane::node;
using Json = nlohmann::json;

namespace {

// Files of this machine, which another one knew as (kDevice, 1), (kDevice, 2), ...
struct Fixture : test::SegmentMemory {
  static constexpr std::uint64_t kDevice = 77;

  Fixture() {
    char place[] = "/tmp/crane-file-names-XXXXXX";
    REQUIRE(::mkdtemp(place) != nullptr);
    top = std::filesystem::canonical(place);
  }
  ~Fixture() { std::filesystem::remove_all(top); }

  std::string make(const std::string& name) {
    std::ofstream(top / name) << name;
    return (top / name).string();
  }
  std::uint64_t known(std::uint64_t inode, const std::string& path) {
    dmt::InodeRecord& r = dmt::find_inode(w, kDevice, inode);
    dmt::remember_path(w, r, path);
    return r.number;
  }
  std::uint64_t number_now(const std::string& path) {
    struct stat info {};
    REQUIRE(::lstat(path.c_str(), &info) == 0);
    return dmt::find_inode(w, info.st_dev, info.st_ino).number;
  }
  bool rename(const Json& before) {
    const Json now = {{"paths", Json::object()}, {"descriptors", Json::object()}};
    return rename_files(w, before, now, ::getpid()).ok();
  }

  const Json nothing = {{"paths", Json::object()}, {"descriptors", Json::object()}};
  std::filesystem::path top;
};

}  // namespace

TEST_CASE("a file with another name on the other machine is found by its path", "[file_names]") {
  Fixture f;
  const std::string one = f.make("one"), two = f.make("two");
  const std::uint64_t first = f.known(1, one), second = f.known(2, two);
  REQUIRE(f.rename(f.nothing));
  CHECK(f.number_now(two) == second);
  CHECK(f.number_now(one) == first);
}

TEST_CASE("a file that was replaced at its path before the checkpoint is gone", "[file_names]") {
  Fixture f;
  const std::string path = f.make("file");
  const std::uint64_t old = f.known(1, path);
  const Json listed = {{"paths", {{path, {Fixture::kDevice, 5}}}}, {"descriptors", Json::object()}};
  REQUIRE(f.rename(listed));
  CHECK(f.number_now(path) > old);
}

TEST_CASE("a path that contains a link by now does not name that file", "[file_names]") {
  Fixture f;
  std::filesystem::create_directory(f.top / "release2");
  f.make("release2/page");
  std::filesystem::create_directory_symlink(f.top / "release2", f.top / "current");
  const std::uint64_t old = f.known(1, (f.top / "current/page").string());
  REQUIRE(f.rename(f.nothing));
  CHECK(f.number_now((f.top / "release2/page").string()) > old);
}

TEST_CASE("a link counts as a file", "[file_names]") {
  Fixture f;
  f.make("page");
  std::filesystem::create_symlink("page", f.top / "link");
  const std::uint64_t link = f.known(1, (f.top / "link").string());
  REQUIRE(f.rename(f.nothing));
  CHECK(f.number_now((f.top / "link").string()) == link);
}

TEST_CASE("without a list of names nothing is renamed", "[file_names]") {
  Fixture f;
  CHECK_FALSE(f.rename(Json::array()));
  CHECK_FALSE(f.rename({{"descriptors", Json::object()}}));
}
