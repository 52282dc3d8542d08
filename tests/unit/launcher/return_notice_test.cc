// SPDX-License-Identifier: Apache-2.0
// GOAL    crane-ctl reads when a lost replica will be restarted.
// METHOD  The notice in a directory, written, read and removed.
// CHECKS  Its values; there is none before and after.
#include "runtime/launcher/return_notice.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

using namespace crane::launcher;

TEST_CASE("returns: crane-ctl reads the planned restart", "[launcher]") {
  char name[] = "/tmp/crane-returns-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  const std::string home = name;
  CHECK(read_notice(home).is_null());
  write_notice(home, {1, "its node is lost", 3, 40'000, "crane-ctl replica resume 1"});
  const auto notice = read_notice(home);
  CHECK(notice["why"] == "its node is lost");
  CHECK(notice["attempts"] == 3);
  CHECK(notice["next_in_ms"].get<int>() > 0);
  CHECK(notice["next_in_ms"].get<int>() <= 40'000);
  remove_notice(home);
  CHECK(read_notice(home).is_null());
  std::filesystem::remove_all(home);
}
