// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/progress_line.h"

#include <catch2/catch.hpp>

using crane::setup::first_line_ns;
using crane::setup::kLineEveryNs;

TEST_CASE("progress: a step that ends within a second shows nothing if it is the first",
          "[setup]") {
  CHECK(first_line_ns(7, 0) == 7 + kLineEveryNs);
}

TEST_CASE("progress: a step after one with lines continues their rhythm", "[setup]") {
  const std::int64_t now = 100 * kLineEveryNs;
  CHECK(first_line_ns(now, now - kLineEveryNs / 4) == now + 3 * kLineEveryNs / 4);
  CHECK(first_line_ns(now, now - kLineEveryNs) == now);
  CHECK(first_line_ns(now, now - 5 * kLineEveryNs) == now);
}
