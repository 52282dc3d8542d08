// SPDX-License-Identifier: Apache-2.0
// The states in which a server is ended and another one started at one place of the log.
//
// CHECKS  RESTARTER-1, RESTARTER-2.
#include "proxy/replica/recovery/restarter.h"

#include <catch2/catch.hpp>

using namespace crane;
using crane::replica::Restarter;

namespace {

void end_at(Restarter& r, std::uint64_t index) {
  REQUIRE(r.end_committed(Index{index}));
  r.admitted(Index{index - 1});
  REQUIRE_FALSE(r.was_notified());
  r.admitted(Index{index});
  REQUIRE(r.was_notified());
}

}  // namespace

TEST_CASE("restart: the log is held from the second entry until a new server takes over",
          "[RESTARTER-1]") {
  Restarter r;
  end_at(r, 10);
  REQUIRE_FALSE(r.holds());
  r.server_ended();
  REQUIRE(r.ended());
  REQUIRE_FALSE(r.holds());
  REQUIRE(r.begin_committed(Index{15}));
  REQUIRE(r.holds());
  REQUIRE_FALSE(r.has_ended());
  REQUIRE_FALSE(r.looks(Index{14}));  // it has not reached the entry
  REQUIRE(r.looks(Index{15}));
  REQUIRE(r.over());
  REQUIRE(r.holds());
  REQUIRE(r.has_ended());
  REQUIRE_FALSE(r.holds());
  REQUIRE_FALSE(r.has_ended());
  end_at(r, 20);  // and again
}

TEST_CASE("restart: a server is over once, and only while the log is held", "[RESTARTER-2]") {
  Restarter r;
  REQUIRE_FALSE(r.over());
  end_at(r, 10);
  REQUIRE_FALSE(r.over());
  REQUIRE_FALSE(r.looks(Index{10}));
  REQUIRE(r.begin_committed(Index{15}));
  REQUIRE(r.over());
  REQUIRE_FALSE(r.over());
  REQUIRE_FALSE(r.looks(Index{15}));
  REQUIRE_FALSE(r.ended());
}

TEST_CASE("restart: a server that ends before it is ordered to has ended unasked",
          "[RESTARTER-1]") {
  Restarter r;
  REQUIRE_FALSE(r.expects_end());
  REQUIRE(r.end_committed(Index{10}));
  r.admitted(Index{9});
  REQUIRE_FALSE(r.expects_end());
  r.server_ended();
  REQUIRE_FALSE(r.ended());
  REQUIRE_FALSE(r.was_notified());
}

TEST_CASE("restart: the proposals of two leaders count once", "[RESTARTER-1]") {
  Restarter r;
  REQUIRE_FALSE(r.begin_committed(Index{3}));
  REQUIRE_FALSE(r.holds());
  end_at(r, 10);
  REQUIRE_FALSE(r.end_committed(Index{12}));
  REQUIRE(r.begin_committed(Index{15}));
  REQUIRE_FALSE(r.begin_committed(Index{16}));
  REQUIRE(r.over());
  REQUIRE(r.has_ended());
  REQUIRE_FALSE(r.begin_committed(Index{17}));
  REQUIRE_FALSE(r.holds());
}
