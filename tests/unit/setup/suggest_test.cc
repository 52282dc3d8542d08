// SPDX-License-Identifier: Apache-2.0
// The command that a user meant by a mistyped one.
#include "runtime/setup/suggest.h"

#include <catch2/catch.hpp>

using namespace crane::setup;

TEST_CASE("suggest: the nearest word, or the list of words", "[setup]") {
  const std::vector<std::string> known{"status", "list", "leader", "member", "replica", "restore"};
  CHECK(nearest("stauts", known) == "status");
  CHECK(nearest("statsu", known) == "status");
  CHECK(nearest("stat", known) == "status");
  CHECK(nearest("lst", known) == "list");
  CHECK(nearest("memebr", known) == "member");
  CHECK(nearest("replcia", known) == "replica");
  CHECK(nearest("frobnicate", known).empty());
  CHECK(nearest("", known).empty());
  CHECK(unknown_command("stauts", known) == "unknown command 'stauts'; did you mean 'status'?");
  CHECK(unknown_command("xyz", {"a", "bcd"}) == "unknown command 'xyz'; there are: a, bcd");
}
