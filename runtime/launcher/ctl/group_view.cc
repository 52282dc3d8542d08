// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/group_view.h"

#include <algorithm>
#include <string>

#include "runtime/control/schema.h"

namespace crane::launcher {

using Json = nlohmann::json;
using control::list_in, control::object_in, control::replica_in, control::ReplicaView,
    control::text_in;

const Json* leader_of(const std::map<int, NodeAnswer>& answers) {
  const Json* leader = nullptr;
  for (const auto& [replica, answer] : answers) {
    if (answer.reply != Reply::kAnswer || text_in(answer.status, "role") != "leader") continue;
    if (leader == nullptr ||
        control::number_in(answer.status, "view") > control::number_in(*leader, "view")) {
      leader = &answer.status;
    }
  }
  return leader;
}

const Json* witness_of(const std::map<int, NodeAnswer>& answers) {
  if (const Json* leader = leader_of(answers)) return leader;
  const Json* newest = nullptr;
  for (const auto& [replica, answer] : answers) {
    if (answer.reply != Reply::kAnswer || list_in(answer.status, "members").empty()) continue;
    if (newest == nullptr ||
        control::number_in(answer.status, "view") > control::number_in(*newest, "view")) {
      newest = &answer.status;
    }
  }
  return newest;
}

namespace {

ReplicaView::Contact seen_by_reply(Reply reply) {
  switch (reply) {
    case Reply::kAnswer:
      return ReplicaView::Contact::kReported;
    case Reply::kAbsent:
      return ReplicaView::Contact::kGone;
    case Reply::kDenied:
      return ReplicaView::Contact::kDenied;
    case Reply::kSilent:
      return ReplicaView::Contact::kSilent;
    case Reply::kDrained:
      return ReplicaView::Contact::kDrained;
    case Reply::kStarts:
      return ReplicaView::Contact::kStarts;
    case Reply::kLost:
      return ReplicaView::Contact::kSilent;
    case Reply::kUnreachable:
    case Reply::kOtherSecret:
    case Reply::kOtherReplica:
      return ReplicaView::Contact::kCutOff;
  }
  return ReplicaView::Contact::kGone;
}

ReplicaView::Member member_of(const std::string& word) {
  return word == "voter"       ? ReplicaView::Member::kVoter
         : word == "returning" ? ReplicaView::Member::kReturning
                               : ReplicaView::Member::kOther;
}

// The replica's row in the witness's status.
const Json& peer_in(const Json* witness, int replica) {
  static const Json kNone = Json::object();
  if (witness == nullptr) return kNone;
  for (const Json& peer : list_in(*witness, "peers")) {
    if (replica_in(peer) == replica) return peer;
  }
  return kNone;
}

ReplicaView one_seen(int replica, const std::map<int, NodeAnswer>& answers, const Json* witness,
                     const std::string& member) {
  ReplicaView one;
  one.replica = replica;
  one.member = member_of(member);
  const Json& peer = peer_in(witness, replica);
  const auto own = answers.find(replica);
  // The others' report counts, if this operator cannot ask the replica.
  const bool asked = own != answers.end() && !(is_cut_off(own->second.reply) && !peer.empty());
  const bool connected = control::flag_in(peer, "connected", true);
  if (asked) {
    one.seen = seen_by_reply(own->second.reply);
    one.connected = connected;
  } else {
    one.seen = peer.empty() ? ReplicaView::Contact::kNotReported
               : !connected ? control::flag_in(peer, "drained") ? ReplicaView::Contact::kDrained
                              : control::flag_in(peer, "was_there", true)
                                  ? ReplicaView::Contact::kGone
                                  : ReplicaView::Contact::kNotYet
               : control::flag_in(peer, "silent") ? ReplicaView::Contact::kSilent
                                                  : ReplicaView::Contact::kReported;
  }
  one.receives_log = control::flag_in(peer, "streaming", true);
  if (one.seen != ReplicaView::Contact::kReported) return one;
  const auto reported = control::readiness_in(asked ? own->second.status : peer);
  if (!reported) one.seen = ReplicaView::Contact::kNotReported;
  one.readiness = reported.value_or(control::Readiness{});
  const bool needs = control::flag_in(peer, "needs_checkpoint");
  one.readiness.needs_checkpoint = one.readiness.needs_checkpoint || needs;
  return one;
}

}  // namespace

control::GroupView seen_by(const std::map<int, NodeAnswer>& answers, const Json& summary) {
  const Json* witness = witness_of(answers);
  control::GroupView group;
  group.leader = static_cast<int>(control::number_in(summary, "leader", kNoReplicaNumber));
  if (group.leader >= static_cast<int>(kNoReplicaNumber)) group.leader = -1;
  group.unsupervised = summary.contains("unsupervised");
  const Json& members = list_in(summary, "members");
  group.knows_members = !members.empty();
  for (const Json& m : members) {
    group.replicas.push_back(one_seen(replica_in(m), answers, witness, text_in(m, "member")));
  }
  if (members.empty()) {  // no node knows the members: take the replicas of this machine
    for (const auto& [replica, answer] : answers) {
      const bool analyses = text_in(answer.status, "role") == "analysis";
      group.replicas.push_back(
          one_seen(replica, answers, witness, analyses ? "analysis" : "voter"));
    }
  }
  const bool led = std::any_of(group.replicas.begin(), group.replicas.end(),
                               [&](const ReplicaView& r) { return r.replica == group.leader; });
  if (group.leader >= 0 && !led) {
    group.replicas.push_back(one_seen(group.leader, answers, witness, "voter"));
  }
  const bool leads_here = leader_of(answers) != nullptr;
  for (const auto& [replica, answer] : answers) {
    if (answer.reply != Reply::kAnswer) continue;
    const bool counts = leads_here ? text_in(answer.status, "role") == "leader"
                                   : &answer.status == witness || witness == nullptr;
    if (const std::string why = text_in(answer.status, "no_quorum"); counts && !why.empty()) {
      group.no_quorum = why;
    }
    const Json& verified = object_in(answer.status, "verified");
    const auto differ = verified.find("differ");  // an older node has none
    const std::string alarm = text_in(verified, "alarm");
    if (!alarm.empty() && (differ == verified.end() || *differ == true)) group.alarm = alarm;
    const std::string none = text_in(object_in(answer.status, "checkpoint"), "none_because");
    if (!none.empty()) group.no_checkpoints = none;
  }
  return group;
}

}  // namespace crane::launcher
