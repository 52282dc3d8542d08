// SPDX-License-Identifier: Apache-2.0
// GOAL    A leader whose server lags behind a follower's hands leadership over, and only then.
// METHOD  The test's clock, and followers that answer as the test decides.
// CHECKS  LAG-1: a server that is stopped, one that crawls, one that computes like all others; a
//         follower that may not run ahead; replicas that are short of processor time by turns.
//         To whom a leader that gives up the lead hands it.
#include "proxy/replica/role/lead_watch.h"
#include "proxy/replica/role/successor.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

using namespace crane;
using namespace crane::replica;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kNow = 1'000'000 * kMs;
constexpr std::array kOthers{ReplicaId{1}, ReplicaId{2}};

LeadWatch::Inputs seen(std::uint64_t applied, std::int64_t behind_ms, std::uint64_t clock = 100) {
  return {true, Index{applied}, behind_ms * kMs, clock};
}
ServerPlaceMessage answer(std::uint64_t applied, std::uint64_t clock = 100, bool waits = false) {
  return {1, applied, clock, waits ? 1U : 0U};
}

// At kNow entries arrive that this replica's server does not run, or runs slowly.  Returns when
// leadership is handed over, in ms; -1: not within two seconds.
int hands_over_after(LeadWatch& watch, const ServerPlaceMessage& place_answer,
                     std::int64_t now_ns = kNow, bool crawls = false) {
  for (int ms = 0; ms < 2000; ++ms) {
    const std::int64_t now = now_ns + ms * kMs;
    const auto run = static_cast<std::uint64_t>(crawls ? ms / 50 : 0);
    const auto actions = watch.step(seen(10 + run, ms), kOthers, now);
    if (actions.successor) {
      CHECK(*actions.successor == ReplicaId{2});
      watch.handed_over(now);
      return ms;
    }
    if (actions.asks) watch.on_report(ReplicaId{2}, place_answer, now);
  }
  return -1;
}

}  // namespace

TEST_CASE("lead: a replica with a stopped server hands leadership over within 200 ms", "[LAG-1]") {
  LeadWatch watch;
  const int ms = hands_over_after(watch, answer(11));
  CHECK(ms > 0);
  CHECK(ms <= 200);
}

TEST_CASE("lead: a computation that all servers do does not move leadership", "[LAG-1]") {
  LeadWatch watch;
  CHECK(hands_over_after(watch, answer(10)) == -1);
  CHECK(hands_over_after(watch, answer(10, 99, true)) == -1);  // it waits for what was passed since
}

TEST_CASE("lead: a follower that may not run ahead reports that it waits for the leader's server",
          "[LAG-1]") {
  LeadWatch watch;
  CHECK(hands_over_after(watch, answer(10, 100, true)) <= 200);
  LeadWatch other;
  CHECK(hands_over_after(other, answer(10, 100, false)) == -1);
}

TEST_CASE("lead: a server that is slightly later keeps leadership", "[LAG-1]") {
  LeadWatch watch;
  for (int ms = 0; ms < 3000; ++ms) {
    const std::int64_t now = kNow + ms * kMs;
    // 80 ms after the follower, at each entry.
    const auto applied = static_cast<std::uint64_t>(ms);
    const auto actions = watch.step(seen(applied, 80), kOthers, now);
    CHECK_FALSE(actions.successor);
    if (actions.asks) watch.on_report(ReplicaId{2}, answer(applied + 80), now);
  }
}

TEST_CASE("lead: a server that crawls loses leadership", "[LAG-1]") {
  LeadWatch watch;
  bool gone = false;
  for (int ms = 0; ms < 3000 && !gone; ++ms) {
    const std::int64_t now = kNow + ms * kMs;
    const auto entry = static_cast<std::uint64_t>(ms);
    const auto actions = watch.step(seen(entry / 20, ms - ms / 20), kOthers, now);
    gone = actions.successor.has_value();
    if (actions.asks) watch.on_report(ReplicaId{1}, answer(entry), now);
    if (gone) CHECK(ms <= 300);
  }
  CHECK(gone);
}

TEST_CASE("lead: it asks only while an entry is old, and not more often than needed") {
  LeadWatch watch;
  CHECK(watch.step(seen(10, 0), kOthers, kNow).due_ns == kNever);
  CHECK_FALSE(watch.step(seen(10, 49), kOthers, kNow).asks);
  CHECK(watch.step(seen(10, 50), kOthers, kNow + kMs).asks);
  CHECK_FALSE(watch.step(seen(10, 51), kOthers, kNow + 2 * kMs).asks);
  auto follower = seen(10, 500);
  follower.leads = false;
  CHECK_FALSE(watch.step(follower, kOthers, kNow + 900 * kMs).asks);
}

TEST_CASE("lead: a replica that gave leadership away and has it again is more patient", "[LAG-1]") {
  LeadWatch watch;
  std::int64_t now = kNow;
  int before = 0;
  for (int i = 0; i < 4; ++i, now += 3000 * kMs) {
    const int ms = hands_over_after(watch, answer(1000), now, true);
    REQUIRE(ms > 0);
    if (i > 1) CHECK(ms > before + 80);
    before = ms;
  }
  now += LeadWatch::kForgiveNs;
  CHECK(hands_over_after(watch, answer(1000), now, true) <= 200);
}

TEST_CASE("lead: a replica whose server is stopped again and again is not more patient",
          "[LAG-1]") {
  LeadWatch watch;
  std::int64_t now = kNow;
  for (int i = 0; i < 8; ++i, now += 3000 * kMs) {
    const int ms = hands_over_after(watch, answer(11), now);
    CHECK(ms > 0);
    CHECK(ms <= 260);
  }
}

TEST_CASE("lead: a replica without a server hands over to any that has one", "[LAG-1][VOTES-1]") {
  LeadWatch watch;
  // The place of its checkpoint, to which its log does not reach back.
  LeadWatch::Inputs own = seen(90, 0);
  own.has_server = false;
  std::optional<ReplicaId> successor;
  for (int ms = 0; ms < 200 && !successor; ++ms) {
    const std::int64_t now = kNow + ms * kMs;
    const auto actions = watch.step(own, kOthers, now);
    successor = actions.successor;
    if (!actions.asks) continue;
    watch.on_report(ReplicaId{1}, answer(0), now);  // nor has this one
    watch.on_report(ReplicaId{2}, answer(80), now);
  }
  CHECK(successor == ReplicaId{2});
}

TEST_CASE("lead: a server gets as long again as the follower needed", "[LAG-1]") {
  LeadWatch watch;
  const int took = GENERATE(60, 300, 900, 5000);
  std::optional<int> gone;
  for (int ms = 0; ms < 10000 && !gone; ++ms) {
    const std::int64_t now = kNow + ms * kMs;
    const auto actions = watch.step(seen(10, ms), kOthers, now);
    if (actions.asks) watch.on_report(ReplicaId{2}, answer(ms < took ? 10 : 11), now);
    if (actions.successor) gone = ms;
  }
  REQUIRE(gone);
  CHECK(*gone >= took + std::min(std::max(took, 100), 1000));
  CHECK(*gone <= took + std::min(std::max(took, 100), 1000) + 60);
}

TEST_CASE("lead: a server that waits for its disk keeps leadership for a second", "[LAG-1]") {
  LeadWatch watch;
  const bool ends = GENERATE(true, false);
  std::optional<int> gone;
  for (int ms = 60; ms < 2000 && !gone; ++ms) {
    const std::int64_t now = kNow + ms * kMs;
    const auto actions = watch.step(seen(10, ms), kOthers, now);
    if (actions.asks) watch.on_report(ReplicaId{2}, answer(11), now);
    const bool waits = !ends || ms < 400;
    if (actions.successor && !(waits && watch.waits_for_disk(now))) gone = ms;
  }
  REQUIRE(gone);
  CHECK(*gone >= (ends ? 400 : 1000));
  CHECK(*gone <= (ends ? 425 : 1025));
}

TEST_CASE("lead: only a voter that receives the log could take over", "[LAG-2]") {
  consensus::MemberStatus m{};
  m.id = ReplicaId{2};
  m.role = consensus::MemberRole::kVoter;
  m.connected = m.streaming = true;
  CHECK(LeadWatch::may_take_lead(m, ReplicaId{0}));
  SECTION("itself") { m.id = ReplicaId{0}; }
  SECTION("a learner") { m.role = consensus::MemberRole::kLearner; }
  SECTION("a replica that is not connected") { m.connected = false; }
  SECTION("a replica that lacks entries which left the log") { m.streaming = false; }
  CHECK_FALSE(LeadWatch::may_take_lead(m, ReplicaId{0}));
}

TEST_CASE("lead: an absent follower does not get leadership", "[LAG-1]") {
  LeadWatch watch;
  (void)watch.step(seen(10, 60), kOthers, kNow);
  watch.on_report(ReplicaId{2}, answer(11), kNow);
  const std::array left{ReplicaId{1}};
  CHECK_FALSE(watch.step(seen(10, 400), left, kNow + 340 * kMs).successor);
  CHECK_FALSE(watch.step(seen(10, 401), kOthers, kNow + 341 * kMs).successor);  // it has returned
  watch.on_report(ReplicaId{2}, answer(11), kNow + 341 * kMs);
  CHECK(watch.step(seen(10, 802), kOthers, kNow + 742 * kMs).successor);
}

TEST_CASE("a leader that gives up the lead hands it to the best server that follows", "[lead]") {
  std::vector<MemberView> members;
  for (std::uint8_t i = 0; i < 3; ++i) {
    MemberView m;
    m.id = ReplicaId{i};
    m.role = consensus::MemberRole::kVoter;
    m.connected = m.streaming = true;
    members.push_back(m);
  }
  const auto best = [&] { return best_successor(members, ReplicaId{0}); };
  CHECK(best() == ReplicaId{1});
  SECTION("it recovers, however near it seems") {
    members[1].report.emplace().recovers = true;
    members[2].lag_ns = 500 * kMs;
  }
  SECTION("it is late, as this leader knows") { members[1].lag_ns = 30 * kMs; }
  SECTION("it is late, as it reports") { members[1].report.emplace().lag_ms = 30; }
  SECTION("it has no server") { members[1].report.emplace().acceptor_only = true; }
  SECTION("it does not follow") { members[1].streaming = false; }
  SECTION("it does not vote") { members[1].role = consensus::MemberRole::kLearner; }
  CHECK(best() == ReplicaId{2});
  members[2].connected = false;
  const bool leads = members[1].votes() && members[1].streaming && !members[1].only_votes();
  CHECK(best() == (leads ? std::optional{ReplicaId{1}} : std::nullopt));
}
