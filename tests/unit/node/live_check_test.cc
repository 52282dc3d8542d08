// SPDX-License-Identifier: Apache-2.0
// GOAL    Replicas that did the same are found equal, and one that did not is told so, alone.
// METHOD  A LiveCheck for each of three replicas; the test is the log, the network and the servers.
// CHECKS  CHECK-1, CHECK-2; what a minority and what the others do; an end takes no digest.
#include "proxy/host/live_check.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "proxy/clients/encode.h"
#include "tests/unit/node/segment_memory.h"

using namespace crane;
using namespace crane::node;
using proxy::Verdict;

namespace {

constexpr View kView{256};  // of replica 0
constexpr std::uint8_t kReplicas = 3;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

struct Replica {
  Config config;
  test::SegmentMemory segment;
  std::unique_ptr<Outputs> outputs = std::move(Outputs::open("", 0, "")).value();
  Leadership leadership{[](EntryType, std::int64_t, GrantTurns, std::span<const std::byte>) {
    return Result<Index>(Index{1});
  }};
  std::unique_ptr<LiveCheck> check;
  std::string alarm;
  int compared = 0;
};

struct World {
  std::vector<std::vector<std::byte>> log;  // HASH payloads; the index is the position + 1
  std::vector<consensus::MemberStatus> members;
  Replica replicas[kReplicas];
  bool delivers = true;  // messages to the leader
  View asked = kView;
  std::int64_t now_ns = 0;
  std::uint64_t work = 0;

  std::string directory = "/tmp/crane-live-check-XXXXXX";

  World() {
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    for (std::uint8_t i = 0; i < kReplicas; ++i) {
      consensus::MemberStatus m{};
      m.id = ReplicaId{i};
      m.role = consensus::MemberRole::kVoter;
      m.connected = true;
      members.push_back(m);
      Replica& r = replicas[i];
      r.config.replica = i;
      r.config.replicas = kReplicas;
      r.config.dir = directory;
      r.leadership.role(i == 0 ? consensus::Role::kLeader : consensus::Role::kFollower, kView,
                        ReplicaId{0});
      LiveCheckActions actions;
      actions.propose = [this](std::span<const std::byte> payload) {
        log.emplace_back(payload.begin(), payload.end());
        return Result<Index>(Index{log.size()});
      };
      actions.send = [this, i](ReplicaId, const proxy::Digest& digest) {
        if (delivers) replicas[0].check->heard(ReplicaId{i}, digest);
      };
      actions.members = [this] { return members; };
      actions.maps = [] { return std::string(); };
      actions.compared = [&r](const proxy::Digest&, const proxy::Digests&) { ++r.compared; };
      actions.diverged = [&r](const std::string& why, Index) { r.alarm = why; };
      r.check = std::make_unique<LiveCheck>(r.config, r.segment.w, *r.outputs, r.leadership, true,
                                            std::move(actions));
    }
    replicas[0].check->lead();
  }
  ~World() { std::filesystem::remove_all(directory); }

  // The server of replica `i` writes to its one client.
  void write(unsigned i, const std::string& text) {
    const auto bytes = bytes_of(text);
    replicas[i].outputs->output({OutputType::kBytes, {}, 1, bytes.size(), 0}, bytes);
  }
  // The leader has had input, and some time passes.
  void step() {
    now_ns += 3'600'000'000'000;
    LiveCheck::Seen seen{true, {}};
    seen.entries[static_cast<std::size_t>(EntryType::kData)] = work += 100'000;
    (void)replicas[0].check->step(seen, now_ns);
  }
  consensus::EntryView entry(std::size_t index) const {
    consensus::EntryView e{};
    e.at = {kView, Index{index}};
    e.type = static_cast<std::uint8_t>(EntryType::kHash);
    e.payload = log[index - 1];
    return e;
  }
  void commit() {
    for (Replica& r : replicas) r.check->committed(entry(log.size()));
  }
  void admit(unsigned i, bool takes_digests = true) {
    replicas[i].check->admitted({OutputType::kAdmitted, {}, log.size(), 0, log.size()},
                                takes_digests, now_ns);
  }
  void admit_all() {
    for (unsigned i = kReplicas; i-- > 0;) admit(i);
  }
  // One cut, and the HASH that carries its digests back to all.
  void round() {
    step();
    commit();
    admit_all();
    step();
    commit();
    admit_all();
  }
};

}  // namespace

TEST_CASE_METHOD(World, "replicas that did the same are equal", "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, "the same");
  round();
  REQUIRE(log.size() == 2);
  for (const Replica& r : replicas) {
    CHECK(r.check->verdict() == Verdict::kEqual);
    CHECK(r.check->alarms().verified() == 1);
    CHECK(r.check->verified_ns() == now_ns);
    CHECK(r.compared == 1);
    CHECK(r.alarm.empty());
  }
}

TEST_CASE_METHOD(World, "a minority is told that it diverged, the others go on", "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, i == 1 ? "another" : "the same");
  round();
  CHECK(replicas[1].alarm.find("replica 1 diverged from the majority") != std::string::npos);
  for (const unsigned i : {0U, 2U}) {
    CHECK(replicas[i].alarm.empty());
    CHECK(replicas[i].check->verdict() == Verdict::kDifferent);
    CHECK_FALSE(replicas[i].check->alarms().none());
  }
}

TEST_CASE_METHOD(World, "a replica that runs what it missed is compared at each cut of it",
                 "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, "the same");
  members[1].connected = false;
  step();
  commit();
  admit(0);
  admit(2);  // the log tells of no digest of replica 1
  step();
  commit();
  admit(0);
  admit(2);
  SECTION("and is equal") {}
  SECTION("and differs") { write(1, "another"); }
  const bool differs = replicas[1].outputs->bytes() > std::string("the same").size();
  const auto admit_at = [this](std::size_t index) {
    replicas[1].check->admitted({OutputType::kAdmitted, {}, index, 0, index}, true, now_ns);
  };
  admit_at(1);
  CHECK(replicas[1].alarm.empty());
  admit_at(2);
  CHECK(replicas[1].alarm.empty() != differs);
  CHECK(replicas[1].check->verdict() == (differs ? Verdict::kDifferent : Verdict::kEqual));
}

TEST_CASE_METHOD(World, "a digest is taken at the admission", "[live_check][CHECK-1]") {
  step();
  commit();
  write(1, "behind the entry in the log, before its admission");
  for (const unsigned i : {0U, 2U}) {
    write(i, "behind the entry in the log, before its admission");
    admit(i);
    write(i, "behind the admission");
  }
  admit(1);
  step();
  commit();
  admit_all();
  for (const Replica& r : replicas) CHECK(r.check->verdict() == Verdict::kEqual);
}

TEST_CASE_METHOD(World, "the leader counts digests of its view and its cut only",
                 "[live_check][CHECK-2]") {
  step();
  commit();
  delivers = false;
  admit_all();
  const auto send = [this](View view, std::uint64_t cut) {
    proxy::Digest digest{};
    digest.view = value(view);
    digest.point.index = cut;
    replicas[0].check->heard(ReplicaId{1}, digest);
  };
  SECTION("of another view") { send(View{512}, 1); }
  SECTION("of another cut") { send(kView, 7); }
  step();
  commit();
  proxy::HashBody body;
  REQUIRE(proxy::decode(log.back(), body));
  REQUIRE(body.digests.size() == kReplicas);
  CHECK(body.digests[0]);
  CHECK_FALSE(body.digests[1]);
}

TEST_CASE_METHOD(World, "a replica that ends takes no digest any more", "[live_check]") {
  step();
  commit();
  admit(0);
  admit(2);
  admit(1, false);
  step();
  proxy::HashBody body;
  REQUIRE(proxy::decode(log.back(), body));
  CHECK(body.digests[2]);
  CHECK_FALSE(body.digests[1]);
}

TEST_CASE_METHOD(World, "nothing is due in a group that does nothing", "[live_check]") {
  const LiveCheck::Seen idle{true, {}};
  CHECK(replicas[0].check->step(idle, now_ns) == INT64_MAX);
  CHECK(log.empty());
  CHECK(replicas[0].check->step({false, {}}, now_ns) == INT64_MAX);
}
