// SPDX-License-Identifier: Apache-2.0
// UNIT    proxy/replica/recovery/recovery_tier.h, proxy/host/recovery/tier_status.h
// GOAL    A replica's recovery tier follows from what was found where a dump was tried.
// CHECKS  TIER-1: a replica's own refusals, followers' refusals while it leads, a successful dump;
//         which tier the status names, and why not the first.
#include "proxy/replica/recovery/recovery_tier.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "proxy/host/recovery/tier_status.h"

using namespace crane;
using namespace crane::replica;

namespace {

struct World {
  RecoveryTier tier;
  Facts facts;
  ActionList out;

  void follow() {
    facts.view = View{256};
    facts.leader = ReplicaId{1};
  }
  void lead() {
    facts.view = View{256};
    facts.leads = true;
  }
  void dump_ended(bool dumped, const std::string& why) { tier.dump_ended(dumped, why, facts, out); }
  // Since the last call: notes to the leader, and reports to crane-run.
  std::vector<RefusalMessage> sent;
  std::vector<std::string> logged;
  void look() {
    sent.clear();
    logged.clear();
    for (const Action& action : std::exchange(out, {})) {
      if (const auto* sent_note = std::get_if<SendNote>(&action)) {
        sent.push_back(std::get<RefusalMessage>(sent_note->message));
      } else if (const auto* report = std::get_if<ReportRefusal>(&action)) {
        logged.push_back(report->reason);
      }
    }
  }
};

}  // namespace

TEST_CASE_METHOD(World, "a follower that is refused informs its leader", "[recovery][TIER-1]") {
  follow();
  dump_ended(false, "");  // given up for another reason
  CHECK(out.empty());
  dump_ended(false, "a futex of its own");
  CHECK(tier.refusal() == "a futex of its own");
  look();
  REQUIRE(sent.size() == 1);
  CHECK(logged == std::vector<std::string>{"a futex of its own"});
  // Its leader, in a separate world.
  World leader;
  leader.tier.on_report(sent[0], true, leader.out);
  CHECK(leader.tier.refusal() == "a futex of its own");
}

TEST_CASE_METHOD(World, "only a leader believes the refusals of others", "[recovery][TIER-1]") {
  follow();
  dump_ended(false, "x");
  look();
  World other;
  other.tier.on_report(sent.at(0), false, other.out);
  CHECK(other.tier.refusal().empty());
}

TEST_CASE_METHOD(World, "a successful dump ends a refusal", "[recovery][TIER-1]") {
  lead();
  dump_ended(false, "x");
  dump_ended(true, "");
  CHECK(tier.refusal().empty());
  look();
  CHECK(sent.empty());  // this replica is the leader
  CHECK(logged == std::vector<std::string>{"x", ""});
}

TEST_CASE_METHOD(World, "a successful dump of another replica ends a refusal",
                 "[recovery][TIER-1]") {
  follow();
  dump_ended(false, "x");
  look();
  CheckpointNote note;
  note.state = CheckpointNote::kTaken;
  tier.taken(note, true, out);  // a checkpoint of the server's files
  CHECK(tier.refusal() == "x");
  note.by_criu = 1;
  tier.taken(note, false, out);  // this machine has no CRIU
  CHECK(tier.refusal() == "x");
  tier.taken(note, true, out);
  CHECK(tier.refusal().empty());
  look();
  CHECK(logged == std::vector<std::string>{""});
  CHECK(sent.empty());  // all have been notified of it
}

TEST_CASE("the status names the tier, and why it is not the first", "[recovery]") {
  node::Config config;
  config.replicas = 3;
  config.container = true;
  config.group = "none";
  config.dir = "/nonexistent";
  checkpoint::Newest newest;
  const auto why = [&](const char* refusal, bool whole_log) {
    return node::tier_status(config, refusal, newest, whole_log).why;
  };
  CHECK(std::string(node::tier_status(config, "", newest, true).tier) == "replay");
  CHECK(why("", true) == "no checkpoint was taken yet");
  CHECK(why("x", true) == "x");
  CHECK(why("x", false) == "x; the log no longer reaches back to its beginning");
  config.container = false;
  CHECK(why("", true) == "the server runs without a container");
  config.container = true;
  config.replicas = 1;
  CHECK(why("", true) == "the group has only one replica, in memory");
}
