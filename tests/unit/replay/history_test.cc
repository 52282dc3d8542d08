// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica's recorded history is read back exactly. A damaged, truncated or foreign
//         history is refused with the entry's index. A replay's check finds the first difference,
//         and reports equality only of what was compared.
// METHOD  Histories written to a temporary directory, cut and flipped at every byte; recordings,
//         and the same run again with one difference each.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "proxy/record/history_follow.h"
#include "proxy/record/history_record.h"
#include "proxy/replay/replay_check.h"

namespace {

using namespace crane;
using namespace crane::proxy;

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Fixture {
  std::string dir = [] {
    std::string name = std::filesystem::temp_directory_path() / "crane-history-XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  ~Fixture() { std::filesystem::remove_all(dir); }
  std::string path() const { return dir + "/replica-3.history"; }

  void record(std::uint64_t from, std::uint64_t to, bool whole = true) const {
    auto recorder = HistoryRecorder::open(dir, 3);
    REQUIRE(recorder.ok());
    recorder.value()->about(R"({"about": 1})");
    for (std::uint64_t i = from; i <= to; ++i) {
      const std::string payload(i % 7, static_cast<char>('a' + i % 26));
      recorder.value()->committed(entry(i, payload));
    }
    if (whole) recorder.value()->finish();
  }
  static consensus::EntryView entry(std::uint64_t i, const std::string& payload) {
    consensus::EntryView e;
    e.at = {make_view(i / 10 + 1, ReplicaId{2}), Index{i}};
    e.type = static_cast<std::uint8_t>(i % 16);
    e.stamp_ns = i * 1000;
    e.grant = static_cast<std::uint32_t>(i * 3);
    e.payload = bytes(payload);
    e.end_pos = i * 64;
    return e;
  }
  std::string text() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << text;
  }
};

}  // namespace

TEST_CASE("history: recorded entries are read back", "[history]") {
  const Fixture fixture;
  const std::uint64_t first = GENERATE(1u, 500u);
  fixture.record(first, first + 999);
  std::string why;
  auto history = History::open(fixture.path(), why);
  REQUIRE(history.ok());
  const History& h = history.value();
  CHECK(h.about() == R"({"about": 1})");
  CHECK(h.file().replica() == 3);
  CHECK_FALSE(h.file().ends_early());
  REQUIRE(h.first() == first);
  REQUIRE(h.last() == first + 999);
  for (std::uint64_t i = h.first(); i <= h.last(); ++i) {
    const std::string payload(i % 7, static_cast<char>('a' + i % 26));
    const consensus::EntryView wanted = Fixture::entry(i, payload), got = h.entry(i);
    REQUIRE(got.at == wanted.at);
    REQUIRE(got.type == wanted.type);
    REQUIRE(got.stamp_ns == wanted.stamp_ns);
    REQUIRE(got.grant == wanted.grant);
    REQUIRE(got.end_pos == wanted.end_pos);
    REQUIRE(std::string(reinterpret_cast<const char*>(got.payload.data()), got.payload.size()) ==
            payload);
  }
}

TEST_CASE("history: truncated anywhere, it contains the whole entries and reports an early end",
          "[history]") {
  const Fixture fixture;
  fixture.record(1, 12, false);
  const std::string whole = fixture.text();
  std::uint64_t most = 0;
  for (std::size_t size = 32; size <= whole.size(); ++size) {
    fixture.write(whole.substr(0, size));
    std::string why;
    auto history = History::open(fixture.path(), why);
    REQUIRE(history.ok());
    CHECK(history.value().file().ends_early());
    REQUIRE(history.value().last() >= most);
    most = history.value().last();
  }
  CHECK(most == 12);
}

TEST_CASE("history: damage inside is reported with the entry before it", "[history]") {
  const Fixture fixture;
  fixture.record(1, 12);
  const std::string whole = fixture.text();
  std::string why;
  const std::size_t last_record = whole.size() - 24 - 32 - 12 % 7;
  for (std::size_t at = 32; at < last_record; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    fixture.write(damaged);
    why.clear();
    auto history = History::open(fixture.path(), why);
    INFO("byte " << at);
    REQUIRE_FALSE(history.ok());
    CHECK(history.error().code == Code::kDamaged);
    CHECK(why.find("entry") != std::string::npos);
  }
  for (std::size_t at = 0; at < 24; ++at) {  // the header
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    fixture.write(damaged);
    CHECK_FALSE(History::open(fixture.path(), why).ok());
  }
}

TEST_CASE("history: gaps, other files and missing files are refused", "[history]") {
  const Fixture fixture;
  std::string why;
  CHECK_FALSE(History::open(fixture.path(), why).ok());
  CHECK(why.find("No such file") != std::string::npos);
  {
    auto recorder = HistoryRecorder::open(fixture.dir, 3);
    REQUIRE(recorder.ok());
    recorder.value()->committed(Fixture::entry(4, "x"));
    recorder.value()->committed(Fixture::entry(6, "x"));
  }
  why.clear();
  CHECK_FALSE(History::open(fixture.path(), why).ok());
  CHECK(why == "entry 4 is followed by entry 6");
  REQUIRE(OutputRecorder::open(fixture.dir, 3).ok());
  std::filesystem::rename(fixture.dir + "/replica-3.out", fixture.path());
  why.clear();
  CHECK_FALSE(History::open(fixture.path(), why).ok());
  CHECK(why == "not a recorded history");
}

// --- the check of a replay ----------------------------------------------------------------------

namespace {

enum class Wrong { kNothing, kByte, kMore, kLess, kClosing, kHash, kMissing, kRest };

// A small run: two connections, three points, then rest.
struct Run {
  template <typename Connected, typename Output, typename Rest>
  static void make(Wrong wrong, Connected connected, Output output, Rest rest) {
    connected(ConnId{1});
    output({OutputType::kAdmitted, {}, 1, 100, 10}, "");
    output({OutputType::kBytes, {}, 1, 0, 0}, wrong == Wrong::kByte ? "hallo" : "hello");
    output({OutputType::kBytes, {}, 1, 0, 0}, wrong == Wrong::kMore ? " world!" : " world");
    output({OutputType::kAdmitted, {}, 2, wrong == Wrong::kHash ? 201u : 200u, 20}, "");
    output({OutputType::kClose, {}, 1, wrong == Wrong::kClosing ? 1u : 0u, 25}, "");
    if (wrong != Wrong::kMissing) output({OutputType::kAdmitted, {}, 3, 300, 30}, "");
    connected(ConnId{3});
    if (wrong != Wrong::kLess) output({OutputType::kBytes, {}, 3, 0, 0}, "more");
    rest(SchedulePoint{3, wrong == Wrong::kRest ? 41u : 40u, 400});
  }
};

struct Recorded {
  Fixture fixture;
  explicit Recorded(bool whole = true) {
    auto outputs = OutputRecorder::open(fixture.dir, 3);
    auto schedule = ScheduleRecorder::open(fixture.dir, 3);
    REQUIRE(outputs.ok());
    REQUIRE(schedule.ok());
    Run::make(
        Wrong::kNothing, [&](ConnId conn) { outputs.value()->connected(conn, 80, "192.0.2.7:1"); },
        [&](const OutputHeader& h, const std::string& text) {
          if (h.type == OutputType::kBytes) outputs.value()->bytes(ConnId{h.conn}, bytes(text));
          if (h.type == OutputType::kClose) outputs.value()->closed(ConnId{h.conn}, "closed");
          if (h.type == OutputType::kAdmitted) {
            schedule.value()->admitted({h.conn, h.clock, h.argument});
          }
        },
        [&](const SchedulePoint& p) {
          if (whole) schedule.value()->at_rest(p);
        });
    if (!whole) return;
    outputs.value()->finish();
    schedule.value()->finish();
  }
};

struct Again {
  Recorded recorded;
  Recording outputs;
  RecordedSchedule schedule;
  ReplayCheck check;
  explicit Again(bool whole = true)
      : recorded(whole),
        outputs(Recording::open(recorded.fixture.dir + "/replica-3.out").value()),
        schedule(RecordedSchedule::open(recorded.fixture.dir + "/replica-3.schedule").value()),
        check(outputs, schedule) {}

  void run(Wrong wrong, bool to_the_end = true) {
    ConnectBody body{};
    body.port = 80;
    body.peer.family = 2;
    body.peer.port = 1;
    const std::uint8_t ip[4] = {192, 0, 2, 7};
    std::memcpy(body.peer.ip, ip, sizeof ip);
    Run::make(
        wrong, [&](ConnId conn) { check.connected(conn, body); },
        [&](const OutputHeader& h, const std::string& text) { check.output(h, bytes(text)); },
        [&](const SchedulePoint& p) { check.at_rest(p, to_the_end); });
  }
};

}  // namespace

TEST_CASE("replay check: the same run again is equal, all of it", "[history]") {
  Again again;
  again.run(Wrong::kNothing);
  if (again.check.difference()) FAIL(again.check.difference()->text);
  CHECK(again.check.points() == 3);
  CHECK(again.check.bytes() == 15);
  CHECK(again.check.rest_compared());
  CHECK_FALSE(again.check.beyond());
}

TEST_CASE("replay check: every kind of difference is found at its place", "[history]") {
  const auto [wrong, index] = GENERATE(table<Wrong, std::uint64_t>({{Wrong::kByte, 1},
                                                                    {Wrong::kMore, 1},
                                                                    {Wrong::kHash, 2},
                                                                    {Wrong::kClosing, 2},
                                                                    {Wrong::kMissing, 3},
                                                                    {Wrong::kLess, 3},
                                                                    {Wrong::kRest, 3}}));
  Again again;
  again.run(wrong);
  INFO("case " << static_cast<int>(wrong));
  REQUIRE(again.check.difference());
  INFO(again.check.difference()->text);
  CHECK(again.check.difference()->index == index);
}

TEST_CASE("replay check: V6, parts missing from a recording that ends early were not compared",
          "[history]") {
  Again again(false);
  again.run(Wrong::kMore);
  CHECK_FALSE(again.check.difference());
  CHECK(again.check.beyond());
}

TEST_CASE("replay check: another digest of the log is a difference", "[history]") {
  Again again;
  const Digest own{1, {2, 200, 20}, 77};
  again.check.digest(own, own);
  CHECK_FALSE(again.check.difference());
  CHECK(again.check.digests() == 1);
  Digest other = own;
  other.outputs = 78;
  again.check.digest(own, other);
  REQUIRE(again.check.difference());
  CHECK(again.check.difference()->part == ReplayPart::kDigest);
  CHECK(again.check.difference()->index == 2);
}

TEST_CASE("replay check: after a checkpoint only later output is compared", "[history]") {
  Again again;
  again.check.begin_behind(1, {{1, 0, 0, 0, 5}});  // "hello" was written before
  again.check.output({OutputType::kBytes, {}, 1, 0, 0}, bytes(" world"));
  again.check.output({OutputType::kAdmitted, {}, 2, 200, 20}, {});
  again.check.output({OutputType::kClose, {}, 1, 0, 25}, {});
  CHECK_FALSE(again.check.difference());
  CHECK(again.check.bytes() == 6);
  CHECK(again.check.points() == 1);
}

TEST_CASE("history: followed at every length, it returns whole entries and no more", "[history]") {
  const Fixture fixture;
  fixture.record(1, 30);
  const std::string all = fixture.text();
  std::string why;
  std::uint64_t before = 0;
  bool about = false;
  for (std::size_t size = 32; size <= all.size(); ++size) {
    std::string part = all.substr(0, size);
    if (size < all.size()) part[24] = 0;  // its writer continues
    fixture.write(part);
    auto follower = HistoryFollower::open(fixture.path(), why);
    REQUIRE(follower.ok());
    HistoryFollower& f = follower.value();
    while (f.next()) {
    }
    REQUIRE(f.damage().empty());
    REQUIRE(f.last() >= before);
    REQUIRE(f.last() <= before + 1);
    REQUIRE(f.ended() == (size == all.size()));
    REQUIRE((!about || !f.about().empty()));
    about = !f.about().empty();
    before = f.last();
  }
  CHECK(before == 30);
}

TEST_CASE("history: followed while it is written, it returns the same entries", "[history]") {
  const Fixture fixture;
  fixture.record(1, 1, false);
  std::string why;
  auto opened = HistoryFollower::open(fixture.path(), why);
  REQUIRE(opened.ok());
  fixture.record(1, 30);
  auto whole = History::open(fixture.path(), why);
  REQUIRE(whole.ok());
  auto again = HistoryFollower::open(fixture.path(), why);
  REQUIRE(again.ok());
  for (std::uint64_t i = 1; i <= 30; ++i) {
    const auto there = again.value().next();
    REQUIRE(there);
    const auto known = whole.value().entry(i);
    CHECK(there->at == known.at);
    CHECK(there->type == known.type);
    CHECK(there->grant == known.grant);
    CHECK(there->stamp_ns == known.stamp_ns);
    CHECK(there->end_pos == known.end_pos);
    CHECK(std::equal(there->payload.begin(), there->payload.end(), known.payload.begin(),
                     known.payload.end()));
  }
}

TEST_CASE("history: a follower reports damage and gaps, and returns nothing after them",
          "[history]") {
  const Fixture fixture;
  fixture.record(1, 30);
  const std::string all = fixture.text();
  std::string why;
  for (std::size_t at = 32; at < all.size(); ++at) {
    std::string part = all;
    part[at] = static_cast<char>(part[at] ^ 1);
    fixture.write(part);
    auto follower = HistoryFollower::open(fixture.path(), why);
    if (!follower.ok()) continue;  // in the description of the server
    while (follower.value().next()) {
    }
    INFO("byte " << at);
    // A length beyond the end of the file is not damage yet: more may follow.
    REQUIRE((!follower.value().damage().empty() || follower.value().last() < 30));
  }
  {
    std::size_t at = kRecordingHeaderBytes, last = at;  // the last record claims a huge size
    for (std::uint32_t body = 0; at < all.size(); at += kRecordHeadBytes + body) {
      last = at;
      std::memcpy(&body, all.data() + at + 4, sizeof body);
    }
    std::string part = all;
    part.replace(last + 4, 4, "\xff\xff\xff\x7f");
    fixture.write(part);
    auto follower = HistoryFollower::open(fixture.path(), why);
    REQUIRE(follower.ok());
    while (follower.value().next()) {
    }
    CHECK(follower.value().damage() == "a record is damaged after entry 29");  // no more is due
  }
  {
    auto recorder = HistoryRecorder::open(fixture.dir, 3);
    REQUIRE(recorder.ok());
    for (const std::uint64_t i : {1, 2, 4}) recorder.value()->committed(Fixture::entry(i, "x"));
  }
  auto follower = HistoryFollower::open(fixture.path(), why);
  REQUIRE(follower.ok());
  while (follower.value().next()) {
  }
  CHECK(follower.value().last() == 2);
  CHECK(follower.value().damage() == "entry 2 is followed by entry 4");
}
