// SPDX-License-Identifier: Apache-2.0
// GOAL    Files that crane-ctl makes get their name when they are complete, and replace nothing;
//         names in the head of a file cannot lead to another place.
// METHOD  Files and directories that are made, given up and made again; heads of archives with
//         invalid names.
// CHECKS  The files that exist afterwards; which heads are refused.
#include "runtime/launcher/ctl/archives.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "consensus/store/tail_format.h"
#include "dmt/base/versions.h"
#include "runtime/launcher/ctl/log_copy.h"
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

TEST_CASE("about: a written text is read back unchanged", "[ctl]") {
  const auto parsed = parse_about(text_of(about(), kBackupHead), kBackupHead, "FILE");
  REQUIRE(parsed.ok());
  CHECK(parsed.value().group == "shop");
  CHECK(parsed.value().index == 12);
  CHECK(parsed.value().data == about().data);
}

TEST_CASE("about: a backup with a log records where the log ends and which versions it needs",
          "[ctl]") {
  About a = about();
  a.last = 12;  // no entry follows the checkpoint
  for (const AgreedVersion& one : kAgreedVersions) a.versions[one.name] = one.number;
  const auto parsed = parse_about(text_of(a, kBackupHead), kBackupHead, "FILE");
  REQUIRE(parsed.ok());
  CHECK(parsed.value().has_log());
  CHECK(parsed.value().last == 12);
  CHECK(parsed.value().versions == a.versions);
  CHECK(check_versions(parsed.value(), "FILE").ok());
  CHECK_FALSE(parse_about(text_of(about(), kBackupHead), kBackupHead, "FILE").value().has_log());
  // A build without logs in backups refuses such a backup by its format version.
  CHECK(text_of(a, kBackupHead).find("\"version\": 2") != std::string::npos);
  CHECK(text_of(about(), kBackupHead).find("\"version\": 1") != std::string::npos);
  for (const char* name : {"wire", "log", "schedule"}) {
    About other = a;
    ++other.versions[name];
    const auto refused = check_versions(other, "FILE");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kWrongVersion);
    CHECK(refused.error().message().find(std::string(name) + " version") != std::string::npos);
    other.versions.erase(name);
    CHECK_FALSE(check_versions(other, "FILE").ok());
  }
  a.last = 11;  // before the checkpoint
  CHECK(parse_about(text_of(a, kBackupHead), kBackupHead, "FILE").error().code == Code::kDamaged);
}

TEST_CASE("log copy: it reaches the commit index of the leader of the newest view", "[ctl]") {
  std::map<int, NodeAnswer> all;
  const auto answer = [&all](int replica, const char* role, std::uint64_t view,
                             std::uint64_t commit) {
    all[replica].reply = Reply::kAnswer;
    all[replica].status = {{"role", role}, {"view", view}, {"commit", commit}};
  };
  CHECK(committed_at_least(all) == 0);
  answer(0, "leader", 512, 90);
  answer(1, "follower", 512, 80);
  answer(2, "follower", 512, 85);
  CHECK(committed_at_least(all) == 90);
  CHECK(able_to_copy(all, 2) == std::vector{2, 1, 0});
  CHECK(able_to_copy(all, 0) == std::vector{1, 2, 0});
  answer(1, "candidate", 769, 80);  // a leader of a newer view may have answered clients
  CHECK(committed_at_least(all) == 0);
  answer(1, "leader", 769, 95);
  CHECK(committed_at_least(all) == 95);
  answer(1, "follower", 512, 80);
  all[0].reply = Reply::kSilent;
  CHECK(committed_at_least(all) == 0);
  CHECK(able_to_copy(all, 0) == std::vector{1, 2});
  answer(0, "analysis", 512, 99);
  CHECK(able_to_copy(all, 0) == std::vector{1, 2});
}

TEST_CASE("about: a log of another position or group does not fit the checkpoint", "[ctl]") {
  const Scratch scratch;
  const std::string path = scratch.path + "/log";
  consensus::store::TailHead head;  // without entries
  head.magic = consensus::store::kTailMagic;
  head.log_id = 77;
  head.begin = head.end = {800, 513, 12};
  head.crc = consensus::store::crc_of(head);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&head), sizeof head);
  About a = about();
  a.last = 12;
  checkpoint::Manifest m;
  m.at = {View{513}, Index{12}};
  m.cursor = 800;
  const auto why = [&](const About& shown, const checkpoint::Manifest& behind, const char* log_id) {
    const auto checked = check_tail(path, "FILE", shown, behind, log_id);
    return checked ? std::string() : checked.error().message();
  };
  CHECK(why(a, m, "77").empty());
  CHECK(why(a, m, "78").find("another group") != std::string::npos);
  for (const auto& [view, index, cursor] :
       {std::tuple{513U, 11U, 800U}, {512U, 12U, 800U}, {513U, 12U, 808U}}) {
    checkpoint::Manifest other;
    other.at = {View{view}, Index{index}};
    other.cursor = cursor;
    CHECK(why(a, other, "77").find("right after the checkpoint") != std::string::npos);
  }
  a.last = 13;
  CHECK(why(a, m, "77").find("it ends at log index 12, not 13") != std::string::npos);
  fs::resize_file(path, sizeof head - 1);
  CHECK(why(a, m, "77").find("FILE is damaged") != std::string::npos);
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

TEST_CASE("restore: the command to continue with names the directory of the restored group",
          "[ctl]") {
  const std::string command = "crane-run --name shop --dir /old --data /d -- server --dir /of-it";
  CHECK(with_dir(command, "/new") ==
        "crane-run --dir /new --name shop --data /d -- server --dir /of-it");
  CHECK(with_dir(command, "") == "crane-run --name shop --data /d -- server --dir /of-it");
  CHECK(with_dir("crane-run --dir=/old -- s", "") == "crane-run -- s");
  CHECK(with_dir("crane-run --dir '/a b' -- s 'x  y'", "/c d") ==
        "crane-run --dir '/c d' -- s 'x  y'");
  CHECK(with_dir("crane-run -- s 'it'\\''s'", "") == "crane-run -- s 'it'\\''s'");
  CHECK(with_dir("", "/new").empty());
}

TEST_CASE("new file: it gets its name at the end, and replaces nothing", "[ctl]") {
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

  // A file created meanwhile by another process.
  NewFile late(scratch.path + "/late");
  REQUIRE(late.open().ok());
  std::ofstream(scratch.path + "/late") << "another";
  CHECK(late.name_it().error().code == Code::kExists);
  CHECK(slurp(scratch.path + "/late") == "another");
}

TEST_CASE("new directory: it gets its name at the end, and remains of dead processes are removed",
          "[ctl]") {
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

TEST_CASE("known group: a written text is read back, and damage is detected", "[ctl]") {
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
