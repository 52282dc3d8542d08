// SPDX-License-Identifier: Apache-2.0
// GOAL    Replicas without a server restart at a checkpoint so that the group goes on meanwhile.
// METHOD  may_restart() alone: a table of what the replica sees.
// CHECKS  VOTES-1.
#include "proxy/host/recovery/missing_entries.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace crane;
using namespace crane::node;

namespace {

constexpr Index kAt{100};

// Of so many voters the first one leads; the others have no server, and their logs held 50.
std::vector<VoterSeen> bare(std::uint8_t voters) {
  std::vector<VoterSeen> seen;
  for (std::uint8_t i = 0; i < voters; ++i) seen.push_back({ReplicaId{i}, true, Index{50}});
  seen.front().waits_behind.reset();
  return seen;
}

}  // namespace

TEST_CASE("missing entries: of replicas without a server one restarts after the other",
          "[missing][VOTES-1]") {
  auto seen = bare(3);
  CHECK(may_restart(seen, ReplicaId{1}, kAt, 0));
  CHECK_FALSE(may_restart(seen, ReplicaId{2}, kAt, kTurnNs - 1));
  CHECK(may_restart(seen, ReplicaId{2}, kAt, kTurnNs));  // the other one does not go
  seen[1].connected = false;                             // it does so: the leader needs this one
  CHECK_FALSE(may_restart(seen, ReplicaId{2}, kAt, kSpareNs - 1));
  CHECK(may_restart(seen, ReplicaId{2}, kAt, kSpareNs));  // it does not come
  seen[1] = {ReplicaId{1}, true, std::nullopt};
  CHECK(may_restart(seen, ReplicaId{2}, kAt, 0));
}

TEST_CASE("missing entries: one that this checkpoint does not help is not waited for",
          "[missing][VOTES-1]") {
  auto seen = bare(3);
  seen[1].waits_behind = kAt;
  CHECK(may_restart(seen, ReplicaId{2}, kAt, 0));
}

TEST_CASE("missing entries: where no replica serves none waits", "[missing][VOTES-1]") {
  auto seen = bare(3);
  SECTION("no other has a server") { seen[0].waits_behind = Index{50}; }
  SECTION("the one that has is away") { seen[0].connected = false; }
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
