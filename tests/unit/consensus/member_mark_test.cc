// SPDX-License-Identifier: Apache-2.0
#include "consensus/member_mark.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

namespace crane::consensus {
namespace {

struct Directory {
  const std::string path =
      std::filesystem::temp_directory_path() / ("crane-mark-" + std::to_string(::getpid()));
  Directory() { std::filesystem::create_directories(path); }
  ~Directory() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("mark: a mark is valid for its log only", "[consensus]") {
  const Directory d;
  CHECK_FALSE(was_member(d.path, ReplicaId{1}, 7));
  REQUIRE(mark_member(d.path, ReplicaId{1}, 7));
  CHECK(was_member(d.path, ReplicaId{1}, 7));
  CHECK_FALSE(was_member(d.path, ReplicaId{1}, 8));
  CHECK_FALSE(was_member(d.path, ReplicaId{2}, 7));
}

TEST_CASE("mark: a restored replica takes its place once (RESTORED-1)", "[consensus]") {
  const Directory d;
  CHECK(forget_restored(d.path, ReplicaId{1}));  // there is no mark
  for (const ReplicaId one : {ReplicaId{0}, ReplicaId{1}}) REQUIRE(mark_restored(d.path, one, 7));
  CHECK(was_restored(d.path, ReplicaId{1}, 7));
  CHECK_FALSE(was_restored(d.path, ReplicaId{1}, 8));
  REQUIRE(forget_restored(d.path, ReplicaId{1}));
  CHECK_FALSE(was_restored(d.path, ReplicaId{1}, 7));
  CHECK(was_restored(d.path, ReplicaId{0}, 7));  // a replica that has not begun yet
}

}  // namespace crane::consensus
