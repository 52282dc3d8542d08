// SPDX-License-Identifier: Apache-2.0
// How far an operation is, as text and as JSON.
#include "runtime/control/progress.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace crane::control {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

TEST_CASE("progress: the text has numbers of entries, or a percentage and sizes", "[progress]") {
  CHECK(text_of({12'400, 24'272, 0, 3'000}, Unit::kEntries) ==
        "12,400 of 24,272 entries, 3 s left");
  CHECK(text_of({1'190'000'000, 3'400'000'000, 0, 200}, Unit::kBytes) ==
        "35 %, 1.2 GB of 3.4 GB, less than 1 s left");
  CHECK(text_of({0, 950, 0, 240'000}, Unit::kBytes) == "0 %, 0 B of 950 B, 4 min left");
  CHECK(text_of({5, 5, 0, -1}, Unit::kBytes) == "100 %, 5 B of 5 B");
}

TEST_CASE("progress: the text is empty while the whole is not known", "[progress]") {
  CHECK(text_of({}, Unit::kBytes).empty());
  CHECK(text_of({10, 0}, Unit::kEntries).empty());
}

TEST_CASE("progress: more done than the whole is 100 %", "[progress]") {
  CHECK(text_of({12, 10}, Unit::kBytes) == "100 %, 12 B of 10 B");
  ProgressMeter meter;
  meter.step(12, 10, 0);
  CHECK(meter.progress().of == 12);
}

TEST_CASE("progress: the meter has a rate after two samples", "[progress]") {
  ProgressMeter meter;
  meter.step(0, 1'000, 0);
  CHECK(meter.progress().left_ms == -1);
  meter.step(100, 1'000, kSecond);
  CHECK(meter.progress().per_s == 100);
  CHECK(meter.progress().left_ms == 9'000);
}

TEST_CASE("progress: JSON keeps all fields, and an unknown time left is null", "[progress]") {
  const Progress known = progress_in(to_json(Progress{1, 2, 3, 4}));
  CHECK(known.done == 1);
  CHECK(known.of == 2);
  CHECK(known.per_s == 3);
  CHECK(known.left_ms == 4);
  CHECK(to_json(Progress{}).at("left_ms").is_null());
  CHECK(progress_in(nlohmann::json::object()).left_ms == -1);
}

}  // namespace crane::control
