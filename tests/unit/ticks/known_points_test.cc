// SPDX-License-Identifier: Apache-2.0
// GOAL    A group starts with exactly the tick points of its own programs.
// METHOD  Command lines with and without a wrapper program that starts the server.
// CHECKS  known_points().
#include "proxy/ticks/known_points.h"

#include <catch2/catch.hpp>

using crane::TickPoint;
using crane::ticks::known_points;

TEST_CASE("known_points: the result holds the points of the programs that the command line names",
          "[ticks]") {
  const auto of = [](std::vector<std::string> command) { return known_points(command); };
  const std::vector<TickPoint> postgres = of({"/usr/lib/postgresql/15/bin/postgres", "-D", "/x"});
  CHECK(postgres.size() == 5);
  CHECK(of({"setpriv", "--reuid=postgres", "postgres"}).size() == postgres.size());
  CHECK(of({"/usr/bin/php8.2", "-S", "127.0.0.1:1"}).size() == 2);
  CHECK(of({"env", "X=1", "/usr/sbin/mariadbd"}).size() == 2);
  CHECK(of({"/postgres/bin/other"}).empty());
  CHECK(of({}).empty());
  for (const TickPoint& point : postgres) {
    CHECK(point.build != 0);
    CHECK(point.weight_ps != 0);
    CHECK(point.bytes >= 5);
  }
}
