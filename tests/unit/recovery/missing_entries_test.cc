// SPDX-License-Identifier: Apache-2.0
// GOAL    Replicas without a server restart at a checkpoint so that the group continues meanwhile.
// METHOD  may_restart() and MissingEntries alone: a table of what the replica sees.
// CHECKS  VOTES-1.
#include "proxy/replica/recovery/missing_entries.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace crane;
using namespace crane::replica;

namespace {

constexpr Index kAt{100};

MemberView voter(std::uint8_t id) {
  MemberView m;
  m.id = ReplicaId{id};
  m.role = consensus::MemberRole::kVoter;
  m.connected = true;
  m.report.emplace();
  return m;
}
void only_votes(MemberView& m, Index behind) {
  m.report->acceptor_only = true;
  m.report->waits_behind = behind;
}

// Of `voters` voters the first one leads; the others have no server, and their logs held 50
// entries.
std::vector<MemberView> bare(std::uint8_t voters) {
  std::vector<MemberView> seen;
  for (std::uint8_t i = 0; i < voters; ++i) {
    seen.push_back(voter(i));
    if (i != 0) only_votes(seen.back(), Index{50});
  }
  return seen;
}

}  // namespace

TEST_CASE("missing entries: replicas without a server restart one after the other",
          "[missing][VOTES-1]") {
  auto seen = bare(3);
  CHECK(may_restart(seen, ReplicaId{1}, kAt, 0));
  CHECK_FALSE(may_restart(seen, ReplicaId{2}, kAt, kTurnNs - 1));
  CHECK(may_restart(seen, ReplicaId{2}, kAt, kTurnNs));  // the other one does not restart
  seen[1].connected = false;                             // it does: the leader needs this replica
  CHECK_FALSE(may_restart(seen, ReplicaId{2}, kAt, kSpareNs - 1));
  CHECK(may_restart(seen, ReplicaId{2}, kAt, kSpareNs));  // it does not connect
  seen[1] = voter(1);
  CHECK(may_restart(seen, ReplicaId{2}, kAt, 0));
}

TEST_CASE("missing entries: a replica that this checkpoint does not help is not waited for",
          "[missing][VOTES-1]") {
  auto seen = bare(3);
  only_votes(seen[1], kAt);
  CHECK(may_restart(seen, ReplicaId{2}, kAt, 0));
}

TEST_CASE("missing entries: a replica that lacks entries is no part of a majority",
          "[missing][VOTES-1]") {
  auto seen = bare(3);
  seen[1] = voter(1);
  CHECK(may_restart(seen, ReplicaId{2}, kAt, 0));
  SECTION("according to its report") { seen[1].report->lacks = true; }
  SECTION("it has sent no report") { seen[1].report.reset(); }
  CHECK_FALSE(may_restart(seen, ReplicaId{2}, kAt, kSpareNs - 1));
  CHECK(may_restart(seen, ReplicaId{2}, kAt, kSpareNs));
}

TEST_CASE("missing entries: if no replica serves none waits", "[missing][VOTES-1]") {
  auto seen = bare(3);
  SECTION("no other has a server") { only_votes(seen[0], Index{50}); }
  SECTION("the one that has is not connected") { seen[0].connected = false; }
  CHECK(none_has_server(seen, ReplicaId{2}));
  CHECK(may_restart(seen, ReplicaId{2}, kAt, 0));
}

TEST_CASE("missing entries: in larger and smaller groups", "[missing][VOTES-1]") {
  auto five = bare(5);
  five[4].connected = false;
  CHECK(may_restart(five, ReplicaId{1}, kAt, 0));
  five[3].connected = false;
  CHECK_FALSE(may_restart(five, ReplicaId{1}, kAt, 0));
  auto two = bare(2);
  CHECK(may_restart(two, ReplicaId{1}, kAt, 0));
}

TEST_CASE("missing entries: a replica restarts only after all that it has", "[missing][LACK-1]") {
  MissingEntries missing(ReplicaId{2});
  auto members = bare(1);
  members.push_back(voter(1));
  members.push_back(voter(2));
  Facts facts;
  facts.now_ns = 1;
  facts.members = members;
  facts.needs_checkpoint = true;
  facts.taken = Index{80};
  ActionList out;
  missing.begin(Index{80}, Index{10}, 1);
  missing.step(true, facts, out);
  REQUIRE(std::holds_alternative<FindCheckpoints>(out.back()));
  out.clear();
  Found found;
  found.purpose = Purpose::kMissing;
  SECTION("the known one is not after it: another host may have one") {
    found.checkpoints = {{{{View{1}, Index{80}}, 0}}};
    missing.found(found, facts, out);
    REQUIRE(out.size() == 1);
    CHECK(std::get<FetchCheckpoint>(out[0]).behind == Index{80});
  }
  SECTION("a distrusted one does not count") {
    found.checkpoints = {{{{View{1}, Index{90}}, 0}, false, true}};
    missing.found(found, facts, out);
    CHECK(std::holds_alternative<FetchCheckpoint>(out.at(0)));
  }
  SECTION("a checkpoint that is still being fetched is waited for") {
    found.checkpoints = {{{{View{1}, Index{90}}, 0}, true, false}};
    found.fetching = true;
    missing.found(found, facts, out);
    CHECK(out.empty());
  }
  SECTION("a checkpoint that could not be unpacked is tried again after a while") {
    found.checkpoints = {{{{View{1}, Index{90}}, 0}}};
    found.unusable = {Index{90}};
    missing.found(found, facts, out);  // LACK-2
    CHECK(std::holds_alternative<FetchCheckpoint>(out.at(0)));
    facts.now_ns = 40'000'000'000;
    missing.found(found, facts, out);
    CHECK(std::holds_alternative<Restart>(out.back()));
  }
  SECTION("a checkpoint after it") {
    found.checkpoints = {{{{View{1}, Index{81}}, 0}}};
    missing.found(found, facts, out);
    REQUIRE(out.size() == 1);
    CHECK(std::get<Restart>(out[0]).why.find("entry 81") != std::string::npos);
  }
}
