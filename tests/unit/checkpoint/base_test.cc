// SPDX-License-Identifier: Apache-2.0
// GOAL    A base contains its lasting directories exactly, hides the machine's, and exists
//         completely or not at all (BASE-1); a position survives its writer.
// METHOD  Hostile trees; an overlay mounted over the base in a mount namespace; a killed writer.
// CHECKS  Equal descriptions of all files; the view through the overlay; the rest of a failed
//         attempt.
#include "checkpoint/base.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "checkpoint/position.h"
#include "tests/unit/checkpoint/image_harness.h"

using namespace crane;
using namespace crane::test;
using checkpoint::Before;
using checkpoint::digest_of_content;
using checkpoint::digest_of_tree;
using checkpoint::make_base;
using checkpoint::Position;
using checkpoint::PositionFile;
using checkpoint::read_position;
using checkpoint::Times;

namespace {

// The view of `path` through an overlay whose upper directory is a copy of the base.
bool is_seen(const std::string& scratch, const std::string& base, const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    fs::create_directories(scratch);
    const bool copied = copy_tree(base, scratch + "/upper").ok();
    for (const char* part : {"/work", "/all"}) fs::create_directories(scratch + part);
    const std::string data =
        "lowerdir=/,upperdir=" + scratch + "/upper,workdir=" + scratch + "/work";
    const bool mounted = copied && unshare(CLONE_NEWNS) == 0 &&
                         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount("x", (scratch + "/all").c_str(), "overlay", 0, data.c_str()) == 0;
    if (!mounted) _exit(2);
    _exit(access((scratch + "/all" + path).c_str(), F_OK) == 0 ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) < 2);
  fs::remove_all(scratch + "/upper");
  fs::remove_all(scratch + "/work");
  return WEXITSTATUS(status) == 1;
}

}  // namespace

TEST_CASE("base: the exact content, and nothing of the machine's", "[root]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  const std::string machines = scratch.path() + "/machines", content = scratch.path() + "/content",
                    base = scratch.path() + "/base";
  fs::create_directories(machines);
  std::ofstream(machines + "/of-the-machine") << "x";
  make_hostile_tree(content, random);
  const auto before = snapshot(content);
  REQUIRE(make_base({{machines, content}}, base, Before::kReplaced).ok());
  auto after = snapshot(base + machines);
  CHECK(after.size() == before.size());
  for (const auto& [name, text] : before) {
    INFO(name);
    if (!name.empty() && name != ".") CHECK(after[name] == text);  // only the top has the mark
  }
  CHECK_FALSE(is_seen(scratch.path() + "/o1", base, machines + "/of-the-machine"));
  CHECK(is_seen(scratch.path() + "/o2", base, "/etc/passwd"));
  CHECK(digest_of_tree(content, Times::kLeftOut) ==
        digest_of_tree(base + machines, Times::kLeftOut));
  CHECK(digest_of_content(content) == digest_of_content(base + machines));

  SECTION("a failure leaves the earlier base") {
    const auto failed =
        make_base({{machines, scratch.path() + "/absent"}}, base, Before::kReplaced);
    CHECK_FALSE(failed.ok());
    CHECK(digest_of_content(content) == digest_of_content(base + machines));
    const auto entries = std::distance(fs::directory_iterator(scratch.path()), {});
    CHECK(entries == 3 + 2);  // machines, content, base, o1, o2
  }
  SECTION("a new base replaces it, or does not") {
    REQUIRE(make_base({{machines, machines}}, base, Before::kStays).ok());
    CHECK(fs::exists(base + machines + "/of-the-machine") == false);
    REQUIRE(make_base({{machines, machines}}, base, Before::kReplaced).ok());
    CHECK(fs::exists(base + machines + "/of-the-machine"));
  }
  SECTION("digests detect changes") {
    const auto tree = digest_of_tree(machines, Times::kCounted);
    const auto bytes = digest_of_content(machines);
    std::ofstream(machines + "/of-the-machine") << "y";
    CHECK(digest_of_content(machines) != bytes);
    CHECK(digest_of_tree(machines, Times::kCounted) != tree);
  }
}

TEST_CASE("position: the last position survives any end of its writer", "[checkpoint]") {
  Scratch scratch;
  CHECK_FALSE(read_position(scratch.path()).has_value());
  const pid_t child = fork();
  if (child == 0) {
    PositionFile file;
    if (!file.open(scratch.path()).ok()) _exit(1);
    file.move(7, 70);
    file.move(8, 80);
    ::kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const auto found = read_position(scratch.path());
  REQUIRE(found.has_value());
  CHECK(found->index == 8);
  CHECK(found->clock == 80);
  CHECK(found->end == Position::kNone);
  fs::resize_file(scratch.path() + "/position", 8);
  CHECK_FALSE(read_position(scratch.path()).has_value());
}
