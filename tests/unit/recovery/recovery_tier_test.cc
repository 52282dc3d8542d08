// SPDX-License-Identifier: Apache-2.0
// UNIT    proxy/host/recovery/recovery_tier.h
// GOAL    What a replica recovers by is what was found out where it was tried.
// CHECKS  TIER-1: own refusals, those of followers while this replica leads, a dump that succeeds;
//         which tier the status names, and why not the first.
#include "proxy/host/recovery/recovery_tier.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace crane;
using namespace crane::node;
using consensus::Role;

namespace {

constexpr View kView{256};

struct World {
  Config config;
  Leadership leadership{[](EntryType, std::int64_t, GrantTurns,
                           std::span<const std::byte>) -> Result<Index> { return Index{1}; }};
  std::vector<replica::RefusalMessage> sent;
  std::vector<std::string> said;
  RecoveryTier tier{config, leadership,
                    RecoveryTierActions{[this](ReplicaId, const replica::RefusalMessage& note) {
                                          sent.push_back(note);
                                        },
                                        [this](const std::string& why) { said.push_back(why); }}};

  World() {
    config.replicas = 3;
    config.container = true;
    config.group = "none";
    config.dir = "/nonexistent";
  }
  void follow() { leadership.role(Role::kFollower, kView, ReplicaId{1}); }
  void lead() { leadership.role(Role::kLeader, kView, ReplicaId{0}); }
};

}  // namespace

TEST_CASE_METHOD(World, "a follower that is refused tells its leader", "[recovery][TIER-1]") {
  follow();
  tier.dump_ended(false, "");  // given up for another reason
  CHECK((said.empty() && sent.empty()));
  tier.dump_ended(false, "a futex of its own");
  CHECK(tier.refusal() == "a futex of its own");
  REQUIRE(sent.size() == 1);
  CHECK(said == std::vector<std::string>{"a futex of its own"});
  // Its leader, in a world of its own.
  World leader;
  leader.lead();
  leader.tier.heard(sent[0]);
  CHECK(leader.tier.refusal() == "a futex of its own");
}

TEST_CASE_METHOD(World, "only a leader believes what others met", "[recovery][TIER-1]") {
  follow();
  tier.dump_ended(false, "x");
  World other;
  other.follow();
  other.tier.heard(sent.at(0));
  CHECK(other.tier.refusal().empty());
}

TEST_CASE_METHOD(World, "a dump that succeeds ends a refusal", "[recovery][TIER-1]") {
  lead();
  tier.dump_ended(false, "x");
  CHECK(sent.empty());  // the leader itself
  tier.dump_ended(true, "");
  CHECK(tier.refusal().empty());
  CHECK(said == std::vector<std::string>{"x", ""});
}

TEST_CASE_METHOD(World, "another replica's dump that succeeds ends a refusal",
                 "[recovery][TIER-1]") {
  follow();
  tier.dump_ended(false, "x");
  sent.clear();
  replica::CheckpointNote note;
  note.came = replica::CheckpointNote::kTaken;
  tier.taken(note, true);  // of the server's files
  CHECK(tier.refusal() == "x");
  note.by_criu = 1;
  tier.taken(note, false);  // this machine has no CRIU
  CHECK(tier.refusal() == "x");
  tier.taken(note, true);
  CHECK(tier.refusal().empty());
  CHECK(said == std::vector<std::string>{"x", ""});
  CHECK(sent.empty());  // all have heard of it
}

TEST_CASE_METHOD(World, "the status names the tier, and why it is not the first", "[recovery]") {
  CHECK(std::string(tier.status(true, "").tier) == "replay");
  CHECK(tier.status(true, "").why == "no checkpoint was taken yet");
  tier.dump_ended(false, "x");
  CHECK(tier.status(true, "").why == "x");
  CHECK(tier.status(false, "").why == "x; the log does not reach back to its beginning any more");
  config.container = false;
  CHECK(tier.status(true, "").why == "the server runs without a container");
  config.container = true;
  config.replicas = 1;
  CHECK(tier.status(true, "").why == "a single replica in memory is all there is");
}
