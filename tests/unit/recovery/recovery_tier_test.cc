// SPDX-License-Identifier: Apache-2.0
// GOAL    What a group recovers by is known where checkpoints are asked for.
// METHOD  A follower's and a leader's RecoveryTier; the test carries their messages.
// CHECKS  TIER-1; what the status says without any checkpoint.
#include "proxy/node/recovery/recovery_tier.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace crane;
using namespace crane::node;

namespace {

constexpr View kView{256};

struct Replica {
  Config config;
  Leadership leadership{[](EntryType, std::int64_t, GrantTurns, std::span<const std::byte>) {
    return Result<Index>(Index{1});
  }};
  std::vector<std::string> changes;
  std::vector<std::vector<std::byte>> sent;
  RecoveryTier tier{config,
                    leadership,
                    {[this](ReplicaId to, std::span<const std::byte> message) {
                       CHECK(to == ReplicaId{0});
                       sent.emplace_back(message.begin(), message.end());
                     },
                     [this](const std::string& reason) { changes.push_back(reason); }}};

  explicit Replica(std::uint8_t number) {
    config.replica = number;
    config.replicas = 3;
    config.dir = "/nonexistent";
    config.container = true;
    leadership.role(number == 0 ? consensus::Role::kLeader : consensus::Role::kFollower, kView,
                    ReplicaId{0});
  }
};

}  // namespace

TEST_CASE("a follower's refusal reaches the leader, and a dump ends it", "[tier][TIER-1]") {
  Replica follower(1), leader(0);
  follower.tier.dump_ended(false, "it has a socket that CRIU does not know");
  REQUIRE(follower.sent.size() == 1);
  REQUIRE(leader.tier.heard(follower.sent[0]));
  CHECK(leader.tier.refusal() == "it has a socket that CRIU does not know");
  CHECK(leader.changes == std::vector{leader.tier.refusal()});
  follower.tier.dump_ended(true, "");
  REQUIRE(leader.tier.heard(follower.sent.back()));
  CHECK(leader.tier.refusal().empty());
  CHECK(follower.tier.refusal().empty());
}

TEST_CASE("a replica that does not lead believes only itself", "[tier][TIER-1]") {
  Replica follower(1), other(2);
  follower.tier.dump_ended(false, "refused");
  REQUIRE(other.tier.heard(follower.sent.at(0)));
  CHECK(other.tier.refusal().empty());
  CHECK(other.changes.empty());
}

TEST_CASE("a dump that failed for another reason says nothing", "[tier]") {
  Replica follower(1);
  follower.tier.dump_ended(false, "");
  CHECK(follower.sent.empty());
  CHECK(follower.changes.empty());
  CHECK_FALSE(follower.tier.heard(std::vector<std::byte>(40)));
}

TEST_CASE("without a checkpoint the log decides", "[tier]") {
  Replica replica(1);
  CHECK(std::string(replica.tier.status(true, "").tier) == "replay");
  const RecoveryStatus lost = replica.tier.status(false, "");
  CHECK(std::string(lost.tier) == "none");
  CHECK(lost.why.find("does not reach back") != std::string::npos);
  replica.config.container = false;
  CHECK(replica.tier.status(true, "").why == "the server runs without a container");
}
