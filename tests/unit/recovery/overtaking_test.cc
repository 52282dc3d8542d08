// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica that is behind restarts at a newer checkpoint if that is quicker, and only
// then. METHOD  Overtaking alone: the test is the server, the clock and the other replicas. CHECKS
// OVERTAKE-1.
#include "proxy/replica/recovery/overtaking.h"

#include <catch2/catch.hpp>

using namespace crane;
using crane::replica::Overtaking;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// The server runs 1000 entries per second from entry 100 on.  A restart took 1.5 s, so it costs 3
// s.
struct Behind {
  Overtaking one;
  Behind() { one.begin(Index{100}, 3 * kSecond / 2, kSecond); }
  std::optional<Index> at(std::int64_t now_ns, bool spared = true, bool caught_up = false) {
    const auto ran = static_cast<std::uint64_t>((now_ns - kSecond) / 1'000'000);
    return one.step({Index{100 + ran}, caught_up, spared, now_ns});
  }
};

}  // namespace

TEST_CASE_METHOD(Behind, "a checkpoint far ahead is worth a restart", "[overtaking]") {
  CHECK_FALSE(at(3 * kSecond));
  one.on_report(Index{5'101});
  // 2 s later it is at 2100, and a restart takes as long as 3000 entries.
  CHECK(at(3 * kSecond) == Index{5'101});
}

TEST_CASE_METHOD(Behind, "a checkpoint that the server reaches as soon is not used",
                 "[overtaking]") {
  one.on_report(Index{5'099});
  CHECK_FALSE(at(3 * kSecond));
  CHECK_FALSE(at(5 * kSecond));
  one.on_report(Index{50});
  CHECK_FALSE(at(6 * kSecond));
}

TEST_CASE_METHOD(Behind, "not before the rate is known", "[overtaking]") {
  one.on_report(Index{1'000'000});
  CHECK_FALSE(at(kSecond));
  CHECK_FALSE(at(kSecond + Overtaking::kMeasureNs - 1));
  CHECK(at(kSecond + Overtaking::kMeasureNs));
}

TEST_CASE_METHOD(Behind, "not while the group needs it, and not once it has caught up",
                 "[overtaking][OVERTAKE-1]") {
  one.on_report(Index{1'000'000});
  CHECK_FALSE(at(3 * kSecond, false));
  CHECK(at(4 * kSecond));
  CHECK_FALSE(at(5 * kSecond, true, true));
  CHECK_FALSE(at(6 * kSecond));
  CHECK_FALSE(one.active());
}

TEST_CASE("overtaking: a replica that began with the group is not overtaken",
          "[overtaking][OVERTAKE-1]") {
  Overtaking one;
  one.on_report(Index{1'000'000});
  CHECK_FALSE(one.step({Index{1}, false, true, 100 * kSecond}));
}

TEST_CASE("overtaking: any checkpoint overtakes a server that runs nothing", "[overtaking]") {
  Overtaking one;
  one.begin(Index{100}, 0, kSecond);
  one.on_report(Index{101});
  CHECK(one.step({Index{100}, false, true, 3 * kSecond}) == Index{101});
}

TEST_CASE("overtaking: the rate is that of the last seconds", "[overtaking]") {
  Overtaking one;
  one.begin(Index{0}, 0, kSecond);
  one.on_report(Index{100'000});
  std::uint64_t applied = 0;
  std::int64_t now = kSecond;
  for (int i = 0; i < 20; ++i) {  // fast for 2 s: it would arrive in a moment
    applied += 4'000;
    now += kSecond / 10;
    CHECK_FALSE(one.step({Index{applied}, false, true, now}));
  }
  bool worth = false;
  for (int i = 0; i < 60 && !worth; ++i) {  // and then slowly
    applied += 1;
    now += kSecond / 10;
    worth = one.step({Index{applied}, false, true, now}).has_value();
  }
  CHECK(worth);
}
