// SPDX-License-Identifier: Apache-2.0
// GOAL    What crane-ctl makes has its name when it is whole, and replaces nothing; what a file
// says of itself leads nowhere else. METHOD  Files and directories that are made, given up and made
// again; heads of archives with names that cannot be. CHECKS  What is there afterwards; which heads
// are refused.
#include "runtime/launcher/ctl/archives.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/launcher/ctl/new_file.h"
#include "runtime/launcher/known_group.h"

using namespace crane;
using namespace crane::launcher;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  std::string path;
  Scratch() {
    char pattern[] = "/var/tmp/crane-archives-XXXXXX";
    path = mkdtemp(pattern);
  }
  ~Scratch() { fs::remove_all(path); }
  auto entries() const { return std::distance(fs::directory_iterator(path), {}); }
};

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

About about() {
  About a;
  a.group = "shop";
  a.view = 3;
  a.index = 12;
  a.data = {"/srv/a", "/var/lib/db"};
  a.digest = "00";
  return a;
}

Code code_of(const About& a) {
  const auto parsed = parse_about(text_of(a, kExportHead), kExportHead, "FILE");
  return parsed ? Code::kOk : parsed.error().code;
}

}  // namespace

TEST_CASE("about: what is written is read again", "[ctl]") {
  const auto parsed = parse_about(text_of(about(), kBackupHead), kBackupHead, "FILE");
  REQUIRE(parsed.ok());
  CHECK(parsed.value().group == "shop");
  CHECK(parsed.value().index == 12);
  CHECK(parsed.value().data == about().data);
}

TEST_CASE("about: names that lead elsewhere, and other formats, are refused", "[ctl]") {
  CHECK(code_of(about()) == Code::kOk);
  for (const char* name : {"", "/", "a", "/a/../b", "/..", "/a/", "//a", "/a/./b", "../a"}) {
    About a = about();
    a.data = {name};
    INFO(name);
    CHECK(code_of(a) == Code::kDamaged);
  }
  for (const char* name : {"", "../x", "a/b", ".", ".."}) {
    About a = about();
    a.group = name;
    INFO(name);
    CHECK(code_of(a) == Code::kDamaged);
  }
  CHECK(parse_about("{", kExportHead, "FILE").error().code == Code::kDamaged);
  CHECK(parse_about(text_of(about(), kBackupHead), kExportHead, "FILE").error().code ==
        Code::kDamaged);
  std::string later = text_of(about(), kExportHead);
  later.replace(later.find("\"version\": 1"), 12, "\"version\": 2");
  CHECK(parse_about(later, kExportHead, "FILE").error().code == Code::kWrongVersion);
}

TEST_CASE("new file: it has its name at the end, and replaces nothing", "[ctl]") {
  const Scratch scratch;
  const std::string path = scratch.path + "/file";
  {
    NewFile given_up(path);
    REQUIRE(given_up.open().ok());
  }
  CHECK(scratch.entries() == 0);
  NewFile file(path);
  auto fd = file.open();
  REQUIRE(fd.ok());
  REQUIRE(checkpoint::write_all(fd.value().get(), "text", 4));
  CHECK_FALSE(fs::exists(path));
  REQUIRE(file.name_it().ok());
  CHECK(slurp(path) == "text");
  CHECK((fs::status(path).permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(NewFile(path).open().error().code == Code::kExists);

  // One that came meanwhile.
  NewFile late(scratch.path + "/late");
  REQUIRE(late.open().ok());
  std::ofstream(scratch.path + "/late") << "another";
  CHECK(late.name_it().error().code == Code::kExists);
  CHECK(slurp(scratch.path + "/late") == "another");
}

TEST_CASE("new directory: it has its name at the end; what the dead left goes", "[ctl]") {
  const Scratch scratch;
  const std::string path = scratch.path + "/deep/group";
  fs::create_directories(scratch.path + "/deep/.group.new-1/files");
  {
    NewDirectory given_up(path);
    REQUIRE(given_up.begin().ok());
    CHECK_FALSE(fs::exists(scratch.path + "/deep/.group.new-1"));
    std::ofstream(given_up.path() + "/some") << "x";
  }
  CHECK(fs::is_empty(scratch.path + "/deep"));
  NewDirectory fresh(path);
  REQUIRE(fresh.begin().ok());
  std::ofstream(fresh.path() + "/some") << "x";
  CHECK_FALSE(fs::exists(path));
  REQUIRE(fresh.name_it().ok());
  CHECK(slurp(path + "/some") == "x");
  CHECK(NewDirectory(path).begin().error().code == Code::kExists);
}

TEST_CASE("known group: what is written is read again, and damage is found", "[ctl]") {
  KnownGroup group;
  group.name = "shop";
  group.log_id = "17";
  group.data = {"/srv/a"};
  group.machines = {5};
  const auto read = parse_known_group(text_of(group));
  REQUIRE(read.ok());
  CHECK(read.value().data == group.data);
  CHECK(read.value().log_id == "17");
  group.log_id = "x";
  CHECK_FALSE(parse_known_group(text_of(group)).ok());
  group.log_id = "17";
  group.machines.clear();
  CHECK_FALSE(parse_known_group(text_of(group)).ok());
  CHECK_FALSE(parse_known_group("").ok());
}
