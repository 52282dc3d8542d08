// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica's recorded schedule is read back exactly. The comparison at common log indexes
//         reports equality only of what was compared completely, and reports the first difference.
// METHOD  Recordings written to a temporary directory; cut at every byte; every verdict.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "proxy/record/schedule_compare.h"
#include "proxy/record/schedule_record.h"

extern "C" void crane_test_function();
extern "C" __attribute__((noinline)) void crane_test_function() { __asm__ volatile(""); }

namespace {

using namespace crane;
using namespace crane::proxy;

// Points of one schedule, with gaps in the indexes, as entries of consensus leave them.
std::vector<SchedulePoint> schedule(std::uint64_t from, std::uint64_t to) {
  std::vector<SchedulePoint> points;
  for (std::uint64_t i = from; i <= to; ++i) {
    points.push_back({3 * i, 100 * i, 0x9E3779B97F4A7C15 * i});
  }
  return points;
}

struct Fixture {
  std::string dir = [] {
    std::string name = std::filesystem::temp_directory_path() / "crane-schedule-XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  int replicas = 0;
  ~Fixture() { std::filesystem::remove_all(dir); }

  std::string path(int replica) const {
    return dir + "/replica-" + std::to_string(replica) + ".schedule";
  }
  // `rest`: the number of turns from the last point to the rest.
  void record(const std::vector<SchedulePoint>& points, bool whole = true, std::uint64_t rest = 5) {
    auto recorder = ScheduleRecorder::open(dir, static_cast<std::uint8_t>(replicas++));
    REQUIRE(recorder.ok());
    for (const auto& p : points) recorder.value()->admitted(p);
    if (!whole) return;
    if (!points.empty()) {
      SchedulePoint p = points.back();
      p.clock += rest;
      p.hash ^= rest;
      recorder.value()->at_rest(p);
    }
    recorder.value()->finish();
  }
  ScheduleComparison compared(bool prefix = false) const {
    std::vector<RecordedSchedule> all;
    for (int i = 0; i < replicas; ++i) {
      auto one = RecordedSchedule::open(path(i));
      REQUIRE(one.ok());
      all.push_back(std::move(one).value());
    }
    return compare_schedules(all, prefix);
  }
};

std::vector<SchedulePoint> read(const RecordedSchedule& recorded) {
  std::vector<SchedulePoint> points;
  RecordedSchedule::Cursor cursor(recorded);
  for (SchedulePoint p{}; cursor.peek(p); cursor.advance()) points.push_back(p);
  return points;
}

}  // namespace

TEST_CASE("schedule: recorded points are read back, over many records", "[schedule]") {
  Fixture fixture;
  fixture.record(schedule(1, 5000));
  const auto recorded = RecordedSchedule::open(fixture.path(0));
  REQUIRE(recorded.ok());
  CHECK(read(recorded.value()) == schedule(1, 5000));
  CHECK(recorded.value().size() == 5000);
  CHECK(recorded.value().last() == 15000);
  REQUIRE(recorded.value().at_rest());
  CHECK(recorded.value().at_rest()->clock == 500005);
  CHECK_FALSE(recorded.value().file().ends_early());
}

TEST_CASE("schedule: cut at any byte, it keeps every whole record and ends early", "[schedule]") {
  Fixture fixture;
  {
    auto recorder = ScheduleRecorder::open(fixture.dir, 0);
    REQUIRE(recorder.ok());
    for (const auto& p : schedule(1, 12)) {
      recorder.value()->admitted(p);
      if (p.index % 12 == 0) recorder.value()->flush();  // records of four points
    }
  }
  std::ifstream file(fixture.path(0), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t size = 32; size < whole.size(); ++size) {
    std::ofstream(fixture.path(0), std::ios::binary) << whole.substr(0, size);
    const auto recorded = RecordedSchedule::open(fixture.path(0));
    REQUIRE(recorded.ok());
    CHECK(recorded.value().file().ends_early());
    CHECK(read(recorded.value()) == schedule(1, 4 * ((size - 32) / (24 + 4 * 24))));
  }
  std::string damaged = whole;
  damaged[60] = static_cast<char>(damaged[60] ^ 1);
  std::ofstream(fixture.path(0), std::ios::binary) << damaged;
  CHECK(RecordedSchedule::open(fixture.path(0)).error().code == Code::kDamaged);
}

TEST_CASE("schedule: a falling index, or a rest elsewhere, is damage", "[schedule]") {
  Fixture fixture;
  auto points = schedule(1, 3);
  std::swap(points[0], points[1]);
  fixture.record(points, false);
  CHECK(RecordedSchedule::open(fixture.path(0)).error().code == Code::kDamaged);
  {
    auto recorder = ScheduleRecorder::open(fixture.dir, 0);
    REQUIRE(recorder.ok());
    recorder.value()->admitted({3, 1, 1});
    recorder.value()->at_rest({2, 1, 1});  // of an earlier entry: left out
    recorder.value()->finish();
  }
  const auto recorded = RecordedSchedule::open(fixture.path(0));
  REQUIRE(recorded.ok());
  CHECK_FALSE(recorded.value().at_rest());
}

TEST_CASE("schedule: a full disk stops the recording, not the caller", "[schedule]") {
  Fixture fixture;
  fixture.record(schedule(1, 2000));
  {
    auto recorder = ScheduleRecorder::open(fixture.dir, 1);
    REQUIRE(recorder.ok());
    recorder.value()->test_only_room(40'000);
    for (const auto& p : schedule(1, 2000)) recorder.value()->admitted(p);
    recorder.value()->finish();
    CHECK_FALSE(recorder.value()->recording());
    CHECK(recorder.value()->take_message().find("No space left") != std::string::npos);
  }
  fixture.replicas = 2;
  const auto c = fixture.compared();
  CHECK(c.verdict == Verdict::kUnknown);
}

TEST_CASE("schedule: equal recordings are equal, also at rest", "[schedule][compare]") {
  Fixture fixture;
  for (int i = 0; i < 3; ++i) fixture.record(schedule(1, 3000));
  const auto c = fixture.compared();
  CHECK(c.verdict == Verdict::kEqual);
  CHECK(c.common == 3000);
  CHECK(c.first == 3);
  CHECK(c.last == 9000);
  CHECK(c.rest_compared);
  CHECK_FALSE(c.difference);
}

TEST_CASE("schedule: the first different log index is reported with all sides", "[schedule]") {
  const std::uint64_t bit = GENERATE(0u, 1u);  // the clock or the hash
  Fixture fixture;
  for (int i = 0; i < 3; ++i) {
    auto points = schedule(1, 3000);
    if (i == 1) (bit == 0 ? points[1499].clock : points[1499].hash) ^= 1;
    if (i == 2) points[2000].hash ^= 1;  // later: not the first
    fixture.record(points);
  }
  const auto c = fixture.compared(true);
  REQUIRE(c.verdict == Verdict::kDifferent);
  REQUIRE(c.difference);
  CHECK(c.difference->index == 4500);
  CHECK_FALSE(c.difference->at_rest);
  CHECK(c.difference->equal_before == schedule(1499, 1499)[0]);
  REQUIRE(c.difference->sides.size() == 3);
  CHECK(c.difference->sides[0] == schedule(1500, 1500)[0]);
  CHECK_FALSE(c.difference->sides[1] == c.difference->sides[0]);
}

TEST_CASE("schedule: an entry that one replica did not admit is a difference", "[schedule]") {
  Fixture fixture;
  fixture.record(schedule(1, 10));
  auto points = schedule(1, 10);
  points.erase(points.begin() + 4);
  fixture.record(points);
  const auto c = fixture.compared();
  REQUIRE(c.verdict == Verdict::kDifferent);
  CHECK(c.difference->index == 15);
  CHECK(c.difference->sides[0]);
  CHECK_FALSE(c.difference->sides[1]);
}

TEST_CASE("schedule: another way to rest after the last entry is a difference", "[schedule]") {
  Fixture fixture;
  fixture.record(schedule(1, 10));
  fixture.record(schedule(1, 10), true, 6);
  const auto c = fixture.compared();
  REQUIRE(c.verdict == Verdict::kDifferent);
  CHECK(c.difference->at_rest);
  CHECK(c.difference->index == 30);
}

TEST_CASE("schedule: V1, parts that were not compared are unknown, never equal",
          "[schedule][compare]") {
  Fixture fixture;
  fixture.record(schedule(1, 10));
  SECTION("a recording that ends early") { fixture.record(schedule(1, 10), false); }
  SECTION("a recording that was killed in the middle") { fixture.record(schedule(1, 7), false); }
  SECTION("a recording that stopped cleanly, but before the others") {
    fixture.record(schedule(1, 9));
  }
  const auto c = fixture.compared();
  CHECK(c.verdict == Verdict::kUnknown);
  CHECK_FALSE(c.unknown.empty());
  CHECK(fixture.compared(true).verdict == Verdict::kEqual);
}

TEST_CASE("schedule: without a common log index there is no verdict", "[schedule][compare]") {
  Fixture fixture;
  fixture.record(schedule(1, 10));
  SECTION("an empty recording") { fixture.record({}); }
  SECTION("a recording that begins after the end of the other") {
    fixture.record(schedule(11, 20));
  }
  CHECK(fixture.compared().verdict == Verdict::kUnknown);
  CHECK(fixture.compared(true).verdict == Verdict::kUnknown);
}

TEST_CASE("schedule: a replica that rejoined is compared from its beginning", "[schedule]") {
  Fixture fixture;
  fixture.record(schedule(1, 10));
  fixture.record(schedule(6, 10));
  const auto c = fixture.compared();
  CHECK(c.verdict == Verdict::kEqual);
  CHECK(c.first == 18);
  CHECK(c.common == 5);
}

namespace {

// Turns as in a trace; the last one has `last_result`.
std::vector<TurnRecord> trace(std::size_t count, std::uint64_t last_result) {
  std::vector<TurnRecord> turns;
  for (std::uint64_t i = 1; i <= count; ++i) turns.push_back({0, i, 0x401000, 2, 5, 1});
  turns.back().result = last_result;
  return turns;
}

void record_traced(Fixture& fixture, const std::vector<SchedulePoint>& points,
                   const std::vector<TurnRecord>& turns) {
  auto recorder =
      ScheduleRecorder::open(fixture.dir, static_cast<std::uint8_t>(fixture.replicas++));
  REQUIRE(recorder.ok());
  // In two records, as they arrive.
  const auto bytes = std::as_bytes(std::span(turns));
  recorder.value()->turns(1, bytes.first(3 * sizeof(TurnRecord)));
  for (const auto& p : points) recorder.value()->admitted(p);
  recorder.value()->turns(4, bytes.subspan(3 * sizeof(TurnRecord)));
  recorder.value()->names(std::string_view("none\0lock\0unlock\0", 17));
  recorder.value()->maps(
      "00400000-00402000 r-xp 00001000 fd:00 1234       /usr/bin/server\n"
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n");
  recorder.value()->finish();
}

}  // namespace

TEST_CASE("schedule: turns are read back with names and places", "[schedule][turns]") {
  Fixture fixture;
  record_traced(fixture, schedule(1, 1), trace(9, 7));
  const auto recorded = RecordedSchedule::open(fixture.path(0));
  REQUIRE(recorded.ok());
  const RecordedSchedule& r = recorded.value();
  REQUIRE(r.turn(1));
  CHECK(r.turn(1)->object == 1);
  CHECK(r.turn(4)->object == 4);
  CHECK(r.turn(9)->result == 7);
  CHECK_FALSE(r.turn(0));
  CHECK_FALSE(r.turn(10));
  CHECK(r.names().operation(2) == "unlock");
  CHECK(r.names().operation(3) == "operation 3");
  CHECK(r.names().operation(kOperationLeave) == "thread leaves");
  CHECK(r.names().place(0x401000) == "/usr/bin/server+0x2000");
  CHECK(r.names().place(0x7f0000000010).empty());
  CHECK(r.names().place(0x500000).empty());
}

TEST_CASE("turns: a place is in the main process and has the function of the caller", "[turns]") {
  TurnNames names;
  names.set_operations(std::string_view("none\0lock\0", 10));
  std::ifstream maps("/proc/self/maps");
  names.set_maps({std::istreambuf_iterator<char>(maps), {}});
  const auto here = reinterpret_cast<std::uint64_t>(&crane_test_function);
  TurnRecord turn{0, 0xbeef, here + 1, 1, 4, 1};
  const std::string text = names.text(turn);
  INFO(text);
  CHECK(text.starts_with("thread 4 of process 1: lock = 0, object beef, called from /"));
  CHECK(text.ends_with(" (crane_test_function+0x0)"));
  turn.process = 2;  // LIVE-V5
  CHECK(names.text(turn) == "thread 4 of process 2: lock = 0, object beef");
}

TEST_CASE("turns: looking up functions does no harm in any file", "[turns]") {
  Fixture fixture;
  std::ifstream own("/proc/self/exe", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(own), {}};
  const std::string path = fixture.dir + "/cut";
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, std::size_t{63}, std::size_t{64},
                                 std::size_t{500}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    for (std::uint64_t at = 0; at < whole.size(); at += whole.size() / 7) {
      const std::string name = function_at(path, at);
      CHECK(name.size() < 10'000);
    }
  }
  std::string wrong = whole.substr(0, 4096);
  for (std::size_t at = 16; at < 64; ++at) wrong[at] = '\xff';
  std::ofstream(path, std::ios::binary) << wrong;
  CHECK(function_at(path, 100).empty());
  CHECK(function_at(fixture.dir, 100).empty());
  CHECK(function_at(fixture.dir + "/none", 100).empty());
}

TEST_CASE("schedule: the first different turn is found between the points", "[schedule][turns]") {
  Fixture fixture;
  std::vector<SchedulePoint> points{{1, 2, 22}, {2, 9, 99}};
  record_traced(fixture, points, trace(9, 0));
  SECTION("another result") {
    points[1].hash = 1;
    auto turns = trace(9, 0);
    turns[5].result = 1;   // turn 6
    turns[3].object = 77;  // an object is identified by its address: no difference
    turns[0].slot = 9;     // not after the last equal point
    record_traced(fixture, points, turns);
    const auto c = fixture.compared();
    REQUIRE(c.turn);
    CHECK(c.turn->number == 6);
    CHECK(c.turn->sides[0]->result == 0);
    CHECK(c.turn->sides[1]->result == 1);
  }
  SECTION("one side admits the entry earlier") {
    points[1] = {2, 7, 1};
    record_traced(fixture, points, trace(9, 0));
    const auto c = fixture.compared();
    REQUIRE(c.turn);
    CHECK(c.turn->number == 8);
    CHECK(c.turn->sides[0]);
    CHECK_FALSE(c.turn->sides[1]);
  }
  SECTION("not traced") {
    points[1].hash = 1;
    fixture.record(points);
    const auto c = fixture.compared();
    CHECK(c.verdict == Verdict::kDifferent);
    CHECK_FALSE(c.turn);
  }
}
