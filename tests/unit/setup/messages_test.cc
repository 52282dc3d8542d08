// SPDX-License-Identifier: Apache-2.0
// A line of another program's log, as crane-run passes it on.
#include "runtime/setup/messages.h"

#include <catch2/catch.hpp>

using namespace crane::setup;

TEST_CASE("messages: a line is passed on without the time of its writer", "[setup]") {
  CHECK(without_time("2026-11-30T11:22:33+0000 crane-node: it leads") == "crane-node: it leads");
  CHECK(without_time("2026-11-30T11:22:33-0330 x") == "x");
  CHECK(without_time("2026-11-30T11:22:33+0000 ").empty());
  for (const char* line : {"", "crane-node: it leads", "2026-11-30T11:22:33+0000",
                           "2026-11-30 11:22:33 crane-node: it leads",
                           "2026-11-30T11:22:33.123+0000 [info] it leads"}) {
    CHECK(without_time(line) == line);
  }
}
