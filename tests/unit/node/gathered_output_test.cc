// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/gathered_output.h"

#include <catch2/catch.hpp>
#include <string>

using namespace crane;
using namespace crane::node;

TEST_CASE("no bytes are gathered after an urgent byte", "[outputs][GATHER-1]") {
  const std::string text = "abc";
  const auto bytes = std::as_bytes(std::span(text));
  const auto record = [](std::uint64_t at, bool urgent) {
    return OutputHeader{OutputType::kBytes, {.urgent = urgent}, 7, at, 0};
  };
  GatheredOutput gathered;
  REQUIRE(gathered.takes(record(0, true)));
  gathered.add(record(0, false), bytes);
  CHECK_FALSE(gathered.header().marks.urgent);
  REQUIRE(gathered.takes(record(3, true)));
  gathered.add(record(3, true), bytes);
  CHECK(gathered.header().marks.urgent);
  CHECK(gathered.header().argument == 0);
  CHECK(gathered.pieces().size() == 2);
  CHECK_FALSE(gathered.takes(record(6, false)));
}
