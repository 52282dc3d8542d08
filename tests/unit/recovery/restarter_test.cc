// SPDX-License-Identifier: Apache-2.0
// The state machine of ending a server and starting another one at one place of the log.
//
// CHECKS  RESTARTER-1, RESTARTER-2.
// METHOD  Actions that count and say what the test tells them.
#include "proxy/replica/recovery/restarter.h"

#include <catch2/catch.hpp>

using namespace crane;
using crane::replica::Restarter;
using State = crane::replica::Restarter::State;

namespace {

struct Fixture {
  bool over = false;
  int ends = 0, begins = 0;
  Restarter r{{[this] { return over; },
               [this] {
                 REQUIRE(over);  // RESTARTER-2
                 ++ends;
               },
               [this] {
                 REQUIRE_FALSE(r.holds());  // RESTARTER-1
                 ++begins;
               }}};

  void end_at(std::uint64_t index) {
    REQUIRE(r.end_committed(Index{index}));
    r.admitted(Index{index - 1});
    REQUIRE_FALSE(r.told());
    r.admitted(Index{index});
    REQUIRE(r.told());
  }
};

}  // namespace

TEST_CASE("restart: the log is held from the second entry until a new server takes over",
          "[RESTARTER-1]") {
  Fixture f;
  f.end_at(10);
  REQUIRE_FALSE(f.r.holds());
  REQUIRE(f.r.server_ended());
  REQUIRE(f.r.ended());
  REQUIRE_FALSE(f.r.holds());
  REQUIRE(f.r.begin_committed(Index{15}));
  REQUIRE(f.r.holds());
  f.over = true;
  f.r.step(Index{14});  // it has not come to the entry
  REQUIRE(f.ends == 0);
  f.r.step(Index{15});
  REQUIRE(f.ends == 1);
  f.r.step(Index{15});
  REQUIRE(f.ends == 1);
  REQUIRE(f.r.holds());
  f.r.gone();
  REQUIRE_FALSE(f.r.holds());
  REQUIRE(f.begins == 1);
  f.end_at(20);  // and again
}

TEST_CASE("restart: a server that does not end is ended where nothing of it is half done",
          "[RESTARTER-2]") {
  Fixture f;
  f.end_at(10);
  REQUIRE(f.r.begin_committed(Index{15}));
  for (int i = 0; i < 1000; ++i) f.r.step(Index{15});
  REQUIRE(f.ends == 0);
  f.over = true;
  f.r.step(Index{15});
  REQUIRE(f.ends == 1);
  REQUIRE_FALSE(f.r.ended());
}

TEST_CASE("restart: who ends before it is told to has ended by itself", "[RESTARTER-1]") {
  Fixture f;
  REQUIRE_FALSE(f.r.server_ended());
  REQUIRE(f.r.end_committed(Index{10}));
  f.r.admitted(Index{9});
  REQUIRE_FALSE(f.r.server_ended());
  REQUIRE_FALSE(f.r.ended());
  REQUIRE_FALSE(f.r.told());
}

TEST_CASE("restart: what two leaders have proposed counts once", "[RESTARTER-1]") {
  Fixture f;
  REQUIRE_FALSE(f.r.begin_committed(Index{3}));
  REQUIRE_FALSE(f.r.holds());
  f.end_at(10);
  REQUIRE_FALSE(f.r.end_committed(Index{12}));
  REQUIRE(f.r.begin_committed(Index{15}));
  REQUIRE_FALSE(f.r.begin_committed(Index{16}));
  f.over = true;
  f.r.step(Index{15});
  f.r.gone();
  REQUIRE_FALSE(f.r.begin_committed(Index{17}));
  REQUIRE_FALSE(f.r.holds());
  REQUIRE(f.begins == 1);
}
