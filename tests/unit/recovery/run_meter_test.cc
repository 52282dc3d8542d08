// SPDX-License-Identifier: Apache-2.0
// How far a recovering replica is, and how long it takes.
#include "proxy/replica/recovery/run_meter.h"

#include <catch2/catch.hpp>

namespace crane::replica {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// After `seconds` at 1000 entries per second, with a target that grows by `grows` per second.
replica::RunMeter after(int seconds, std::uint64_t grows) {
  RunMeter meter;
  meter.recovers(Index{500});
  for (int i = 0; i <= seconds * 4; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    meter.step(Index{500 + at * 250}, Index{10'500 + at * grows / 4}, false, i * kSecond / 4);
  }
  return meter;
}

}  // namespace

TEST_CASE("run meter: entries since it began, the rate, and the time left", "[recovery]") {
  const control::Progress p = after(4, 0).progress();
  CHECK(p.done == 4'000);
  CHECK(p.of == 10'000);
  CHECK(p.per_s == 1'000);
  CHECK(p.left_ms == 6'000);
}

TEST_CASE("run meter: the time left includes what the group adds meanwhile", "[recovery]") {
  CHECK(after(4, 500).progress().left_ms == 16'000);
  CHECK(after(4, 1'000).progress().left_ms == -1);  // it does not get closer
}

TEST_CASE("run meter: the rate is that of the last seconds", "[recovery]") {
  RunMeter meter = after(4, 0);
  for (int i = 17; i < 40; ++i) meter.step(Index{4'500}, Index{10'500}, false, i * kSecond / 4);
  CHECK(meter.progress().per_s == 0);
  CHECK(meter.progress().left_ms == -1);
}

TEST_CASE("run meter: it ends when nothing is left, and without missed entries it does not start",
          "[recovery]") {
  RunMeter meter;
  meter.step(Index{1}, Index{2}, false, kSecond);
  CHECK_FALSE(meter.recovering());
  meter.recovers(Index{0});
  CHECK(meter.recovering());
  CHECK(meter.progress().of == 0);
  meter.step(Index{9}, Index{9}, true, kSecond);
  CHECK_FALSE(meter.recovering());
}

}  // namespace crane::replica
