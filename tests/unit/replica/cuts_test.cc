// SPDX-License-Identifier: Apache-2.0
// GOAL    Replicas that did the same are found equal; only one that did not is found different.
// METHOD  The machine for each of three replicas; the test is the log, the network and the servers.
// CHECKS  CHECK-1, CHECK-2; what a minority and what the others do; an end takes no digest.
#include "proxy/replica/check/cuts.h"

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dmt/sequence/entry.h"

using namespace crane;
using namespace crane::replica;
using namespace crane::replica::cuts;
using proxy::HashBody;
using proxy::Verdict;

namespace {

constexpr View kView{256};  // replica 0 leads
constexpr std::uint8_t kReplicas = 3;

struct Replica {
  std::optional<Cuts> check;
  std::string output;
  std::string alarm;  // why it must not continue
  std::vector<Raise> raised;
  int compared = 0, taken = 0, verified = 0;
  std::uint64_t begun_again = 0;
};

struct World {
  std::vector<HashBody> log;  // the index is the position + 1
  std::vector<consensus::MemberStatus> members;
  std::vector<Replica> replicas;
  bool delivers = true;  // messages reach the leader
  bool busy = false, refuses = false;
  int looks = 0;               // of the leader, at the members
  bool with_evidence = false;  // in the last proposal
  std::int64_t now_ns = 0;
  std::array<std::uint64_t, 8> entries{};

  World() {
    for (std::uint8_t i = 0; i < kReplicas; ++i) {
      consensus::MemberStatus m{};
      m.id = ReplicaId{i};
      m.role = consensus::MemberRole::kVoter;
      m.connected = true;
      members.push_back(m);
      replicas.emplace_back();
      begin(i);
    }
    step(0, BecameLeader{});
  }

  // Begins a process of replica `i`.
  void begin(std::uint8_t i, bool evaluates = true) {
    replicas[i].check.emplace(Options{ReplicaId{i}, kReplicas, evaluates});
  }
  void step(unsigned i, const Event& event) {
    Replica& r = replicas[i];
    r.check->step(event, now_ns);
    ActionList list;
    while (r.check->take_actions(list)) {
      for (const Action& action : list) {
        std::visit([&](const auto& a) { carry_out(i, r, a); }, action);
      }
    }
  }
  void on_report(unsigned from, const proxy::Digest& digest) {
    step(0, PeerDigest{ReplicaId{static_cast<std::uint8_t>(from)}, digest, {true, kView}});
  }

  // The server of replica `i` writes to its only client.
  void write(unsigned i, const std::string& text) { replicas[i].output += text; }
  // The leader has received input, and some time passes.
  void step() {
    now_ns += 3'600'000'000'000;
    entries[static_cast<std::size_t>(EntryType::kData)] += 100'000;
    look();
  }
  std::int64_t look(bool serves = true) {
    step(0, Tick{serves, busy, entries, replicas[0].output.size()});
    return replicas[0].check->deadline_ns();
  }
  void commit() {
    for (unsigned i = 0; i < kReplicas; ++i) {
      step(i, Committed{{kView, Index{log.size()}}, log.back()});
    }
  }
  void admit_at(unsigned i, std::size_t index, bool accepts_digests = true) {
    step(i, Admitted{{index, 0, index}, accepts_digests, voters_of(members)});
  }
  void admit(unsigned i, bool accepts_digests = true) { admit_at(i, log.size(), accepts_digests); }
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

 private:
  void carry_out(unsigned i, Replica&, const LookAtMembers&) {
    ++looks;
    step(i, Members{members});
  }
  void carry_out(unsigned i, Replica&, const Propose& proposal) {
    if (!refuses) log.push_back(proposal.body);
    with_evidence = proposal.with_evidence;
    step(i, Proposed{!refuses, proposal.body.cut, Index{log.size()}});
  }
  void carry_out(unsigned i, Replica& r, const TakeDigest& take) {
    ++r.taken;
    const std::uint64_t outputs = std::hash<std::string>{}(r.output);
    step(i, Taken{{value(take.view), take.here, outputs}, {i == 0, kView}});
  }
  void carry_out(unsigned i, Replica&, const SendDigest& digest) {
    REQUIRE(digest.to == ReplicaId{0});
    if (delivers) on_report(i, digest.digest);
  }
  void carry_out(unsigned, Replica& r, const Compared&) { ++r.compared; }
  void carry_out(unsigned, Replica& r, const Verified&) { ++r.verified; }
  void carry_out(unsigned, Replica& r, const StartAgain& begin) {
    r.begun_again = begin.here.index;
  }
  void carry_out(unsigned i, Replica& r, const Raise& raise) {
    r.raised.push_back(raise);
    step(i, Raised{raise.what, raise.at, raise.accused, "now"});
  }
  void carry_out(unsigned, Replica& r, const Diverged& d) { r.alarm = d.alarm; }
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
    CHECK(r.verified == 1);
    CHECK(r.alarm.empty());
  }
  CHECK_FALSE(with_evidence);
}

TEST_CASE_METHOD(World, "a minority is informed that it diverged, and the others continue",
                 "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, i == 1 ? "another" : "the same");
  round();
  CHECK(replicas[1].alarm.find("replica 1 diverged from the majority") != std::string::npos);
  CHECK_FALSE(log.back().restarts);
  for (const unsigned i : {0U, 2U}) {
    CHECK(replicas[i].alarm.empty());
    CHECK(replicas[i].check->verdict() == Verdict::kDifferent);
    CHECK(replicas[i].check->alarms().differ());
  }
  for (int i = 0; i < 2; ++i) {  // while it is away, the equal majority proves nothing about it
    step();
    commit();
    for (const unsigned there : {2U, 0U}) admit(there);
  }
  CHECK(replicas[0].check->verdict() == Verdict::kEqual);
  CHECK(replicas[0].check->alarms().differ());
  begin(1);  // not yet at a checkpoint of the others
  round();
  CHECK(replicas[0].check->alarms().differ());
  begin(1);
  replicas[1].output = replicas[0].output;
  round();
  for (const unsigned i : {0U, 2U}) {
    CHECK_FALSE(replicas[i].check->alarms().differ());
    CHECK_FALSE(replicas[i].check->alarms().none());
  }
}

TEST_CASE_METHOD(World, "a replica that runs what it missed is compared at each cut",
                 "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, "the same");
  members[1].connected = false;
  step();
  commit();
  admit(0);
  admit(2);  // the log contains no digest of replica 1
  step();
  commit();
  admit(0);
  admit(2);
  SECTION("and is equal") {}
  SECTION("and differs") { write(1, "another"); }
  const bool differs = replicas[1].output != "the same";
  admit_at(1, 1);
  CHECK(replicas[1].alarm.empty());
  admit_at(1, 2);
  CHECK(replicas[1].alarm.empty() != differs);
  CHECK(replicas[1].check->verdict() == (differs ? Verdict::kDifferent : Verdict::kEqual));
}

TEST_CASE_METHOD(World, "a digest is taken at the admission", "[live_check][CHECK-1]") {
  step();
  commit();
  admit_at(1, 99);  // another entry
  CHECK(replicas[1].taken == 0);
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

TEST_CASE_METHOD(World, "the leader counts only digests of its view and its cut",
                 "[live_check][CHECK-2]") {
  step();
  commit();
  delivers = false;
  admit_all();
  const auto send = [this](View view, std::uint64_t cut) {
    proxy::Digest digest{};
    digest.view = value(view);
    digest.point.index = cut;
    on_report(1, digest);
  };
  SECTION("of another view") { send(View{512}, 1); }
  SECTION("of another cut") { send(kView, 7); }
  SECTION("while it leads") {
    proxy::Digest digest{value(kView), {1, 0, 0}, 0};
    step(0, PeerDigest{ReplicaId{1}, digest, {false, kView}});
  }
  step();
  commit();
  const HashBody& body = log.back();
  REQUIRE(body.digests.size() == kReplicas);
  CHECK(body.digests[0]);
  CHECK_FALSE(body.digests[1]);
}

TEST_CASE_METHOD(World, "a replica that has ended takes no digest", "[live_check]") {
  step();
  commit();
  admit(0);
  admit(2);
  admit(1, false);
  step();
  const HashBody& body = log.back();
  CHECK(body.digests[2]);
  CHECK_FALSE(body.digests[1]);
}

TEST_CASE_METHOD(World, "nothing is due in a group that does nothing", "[live_check]") {
  CHECK(look() == kNever);
  CHECK(log.empty());
  entries[static_cast<std::size_t>(EntryType::kData)] = 1;
  CHECK(look(false) == kNever);
  CHECK(log.empty());
}

TEST_CASE_METHOD(World, "a lasting alarm is logged once, and keeps the first evidence",
                 "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, i == 1 ? "another" : "the same");
  round();
  step();
  commit();
  admit_all();
  const auto& raised = replicas[2].raised;
  REQUIRE(raised.size() == 2);
  CHECK(raised[0].must_log);
  CHECK(raised[0].keeps_evidence);
  CHECK_FALSE(raised[1].must_log);
  CHECK_FALSE(raised[1].keeps_evidence);
  CHECK(replicas[2].check->alarms().count() == 2);
  REQUIRE(replicas[1].raised.size() == 2);
  CHECK(replicas[1].raised[1].must_log);  // the accused one logs it each time
}

TEST_CASE_METHOD(World, "a replica that differs from the leader compares its evidence",
                 "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, i == 1 ? "another" : "the same");
  step();
  commit();
  admit_all();
  step();
  CHECK(with_evidence);
  log.back().evidence.emplace();
  commit();
  SECTION("of that cut") {
    admit_all();
    CHECK(replicas[1].raised.back().theirs);
    CHECK_FALSE(replicas[0].raised.back().theirs);
    CHECK_FALSE(replicas[2].raised.back().theirs);
  }
  SECTION("not of another one") {
    begin(1);
    step(1, Committed{{kView, Index{2}}, log.back()});
    admit_all();
    CHECK_FALSE(replicas[1].raised.back().theirs);
    CHECK_FALSE(replicas[1].raised.back().keeps_evidence);
  }
}

TEST_CASE_METHOD(World, "where none has a majority all are compared again from then on",
                 "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, std::to_string(i));
  step();
  commit();
  admit_all();
  SECTION("when all are there") {
    step();
    CHECK(log.back().restarts);
    commit();
    admit_all();
    for (const Replica& r : replicas) {
      CHECK(r.begun_again == 2);
      CHECK(r.check->alarms().restarted_from() == 2);
      CHECK(r.alarm.empty());
    }
  }
}

TEST_CASE_METHOD(World, "nothing restarts while a digest is missing that may make a majority",
                 "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, std::to_string(i));
  step();
  commit();
  admit(1);
  SECTION("and this replica's makes evidence") {
    admit(0);
    step();
    CHECK(with_evidence);
  }
  SECTION("and this replica's server has not reached the cut") {
    admit(2);
    step();
    CHECK_FALSE(with_evidence);
  }
  CHECK_FALSE(log.back().restarts);
}

TEST_CASE_METHOD(World, "nothing that precedes a restart of the comparison counts",
                 "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, std::to_string(i));
  step();
  commit();
  admit_all();
  now_ns += 3'600'000'000'000;
  look();  // no work since then: no cut
  REQUIRE(log.size() == 2);
  CHECK_FALSE(log.back().cut);
  CHECK(log.back().restarts);
  commit();
  admit_all();
  CHECK(replicas[1].taken == 1);
  HashBody late = log.back();  // by another leader
  late.restarts = false;
  late.digests.assign(kReplicas, late.digests[1]);
  log.push_back(late);
  commit();
  admit(1);
  CHECK(replicas[1].check->verdict() == Verdict::kEqual);
  CHECK(replicas[1].verified == 0);
}

TEST_CASE_METHOD(World, "digests are carried once", "[live_check]") {
  step();
  CHECK(replicas[0].check->deadline_ns() > now_ns);
  commit();
  admit_all();
  now_ns += 3'600'000'000'000;
  look();
  REQUIRE(log.size() == 2);
  CHECK_FALSE(log.back().digests.empty());
  CHECK(look() == kNever);
  step();
  CHECK(log.back().digests.empty());
  CHECK(log.back().cut);
}

TEST_CASE_METHOD(World, "only clients' input, or much output of the server, is work",
                 "[live_check]") {
  std::vector<std::uint64_t> counts(kEntryTypeSlots);
  const auto due = [&](EntryType type, std::uint64_t count) {
    counts.assign(kEntryTypeSlots, 0);
    counts[static_cast<std::size_t>(type)] = count;
    Cuts fresh({ReplicaId{0}, kReplicas, true});
    fresh.step(Tick{true, true, counts, 0}, now_ns);
    return fresh.deadline_ns() != kNever;
  };
  CHECK(due(EntryType::kData, 1));
  CHECK_FALSE(due(EntryType::kHash, 1'000'000));
  CHECK(looks == 0);
}

TEST_CASE_METHOD(World, "a group of one compares nothing", "[live_check]") {
  replicas[0].check.emplace(Options{ReplicaId{0}, 1, true});
  step();
  CHECK(looks == 0);
  CHECK(log.empty());
}

TEST_CASE_METHOD(World, "an unrequested list of members has no effect", "[live_check]") {
  busy = true;
  step();
  step(0, Members{members});
  CHECK(log.empty());
}

TEST_CASE_METHOD(World, "the leader waits for the digests of connected voters", "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, "the same");
  step();
  commit();
  admit(0);
  admit(2);
  now_ns += 1'500'000'000;  // more than the pace, less than the patience
  SECTION("not yet") {
    look();
    CHECK(log.size() == 1);
    admit(1);
  }
  SECTION("one is not connected") { members[1].connected = false; }
  SECTION("one does not vote") { members[1].role = consensus::MemberRole::kLearner; }
  look();
  CHECK(log.size() == 2);
}

TEST_CASE_METHOD(World, "a digest of a replica that does not vote does not count", "[live_check]") {
  step();
  commit();
  admit_all();
  members[1].role = consensus::MemberRole::kLearner;
  step();
  CHECK_FALSE(log.back().digests[1]);
  CHECK(log.back().digests[2]);
}

TEST_CASE_METHOD(World, "a proposal that failed is made again later", "[live_check]") {
  SECTION("the log is busy") { busy = true; }
  SECTION("it is refused") { refuses = true; }
  step();
  CHECK(log.empty());
  CHECK(looks == (busy ? 0 : 1));
  busy = refuses = false;
  look();
  CHECK(log.size() == 1);
}

TEST_CASE_METHOD(World, "a new leader begins with its own cut", "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, std::to_string(i));
  step();
  commit();
  admit_all();
  step(0, BecameLeader{});
  look();
  REQUIRE(log.size() == 2);
  CHECK(log.back().cut);
  CHECK(log.back().digests.empty());
  CHECK_FALSE(with_evidence);
}

TEST_CASE_METHOD(World, "a replay compares and judges nothing", "[live_check]") {
  begin(1, false);
  for (unsigned i = 0; i < kReplicas; ++i) write(i, i == 1 ? "another" : "the same");
  round();
  CHECK(replicas[1].compared == 1);
  CHECK(replicas[1].check->verdict() == Verdict::kUnknown);
  CHECK(replicas[1].raised.empty());
}

TEST_CASE_METHOD(World, "a replica from a checkpoint answers for nothing before it",
                 "[live_check]") {
  for (unsigned i = 0; i < kReplicas; ++i) write(i, i == 1 ? "another" : "the same");
  step();
  commit();
  admit_all();
  step();
  commit();
  begin(1);
  step(1, Restored{Index{1}, 7, 0});
  CHECK(replicas[1].check->alarms().unbroken() == 7);
  step(1, Committed{{kView, Index{2}}, log.back()});
  admit(1);
  CHECK(replicas[1].alarm.empty());
}
