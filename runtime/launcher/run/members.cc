// SPDX-License-Identifier: Apache-2.0
// Who of a running group has a node: those who come, return, leave for a while, or for good.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/launcher/child.h"
#include "runtime/launcher/run/group.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

std::string name_of(int number) { return "replica " + std::to_string(number); }

}  // namespace

bool Group::start_again(Replica& replica, const Begin& begin) {
  if (const Outcome p = start_node(replica, begin); !p) {
    replica.problem = p;
    return false;
  }
  replica.problem = Done{};
  replica.fatal_code = 0;
  replica.server = -1;
  replica.ready = replica.drained = replica.removed = replica.acceptor_only = replica.introduces =
      false;
  replica.asks_to_listen.clear();
  replica.returns.begins(now_ms());
  remove_notice(home_of(replica));
  write_state();
  return true;
}

// Its node ended because it was told to: nobody misses it.
bool Group::is_gone(Replica& replica) {
  if (!replica.removed && !replica.drained) return false;
  replica.problem = Done{};
  replica.ready = false;
  replica.returns.forget();
  if (replica.removed) {
    replica.member = replica.votes = false;
    say(name_of(replica.number) + " has left the group");
  } else {
    say(name_of(replica.number) + " is drained; crane-ctl replica resume " +
        std::to_string(replica.number) + " brings it back");
  }
  write_state();
  if (replica.drained && replica.next) bring_back(replica, *std::exchange(replica.next, {}));
  return true;
}

// Who was added gets a node.  Its place may have been another's before.
void Group::on_members(const Json& members) {
  if (phase_ == Phase::kStopping) return;
  for (Replica& replica : replicas_) {
    const auto found = std::find_if(members.begin(), members.end(), [&](const Json& m) {
      return m.value("replica", -1) == replica.number;
    });
    const bool is_member = found != members.end();
    const bool votes = is_member && found->value("member", "") == "voter";
    if (votes && !replica.votes) say(name_of(replica.number) + " votes from now on");
    replica.votes = votes;
    if (!is_member && replica.returns.planned()) stops_returning(replica);
    const bool was_member = std::exchange(replica.member, is_member);
    if (analyses(replica)) {
      analysis_changed(replica, is_member);
      continue;
    }
    if (was_member || !is_member || replica.node >= 0) continue;
    Begin begin;
    begin.restores = begin.may_begin = begin.forgets = true;
    if (start_again(replica, begin)) {
      say(name_of(replica.number) + " was added to the group and starts");
    } else {
      say(replica.problem.error().text);
    }
  }
}

void Group::on_bring_back(const Json& message) {
  const auto number = static_cast<std::size_t>(message.at("replica").get<int>());
  if (number >= replicas_.size() || phase_ != Phase::kServing) return;
  Replica& replica = replicas_[number];
  if (!replica.member || analyses(replica)) return;
  hear(replica);  // who asks for it has seen that it says goodbye
  Begin begin;
  begin.restores = true;
  begin.checkpoint = message.value("checkpoint", "");
  begin.forgets = message.value("forget", false);
  begin.may_begin = begin.checkpoint.empty();
  if (replica.node < 0) {
    bring_back(replica, begin);
  } else if (replica.drained) {
    replica.next = begin;  // its node has said goodbye and is about to end
  }
}

void Group::bring_back(Replica& replica, const Begin& begin) {
  replica.returns.forget();
  if (start_again(replica, begin)) {
    say(name_of(replica.number) + " is brought back");
  } else {
    plan_return(replica);
  }
}

const char* Group::role_of(const Replica& replica) const {
  if (analyses(replica)) return replica.node >= 0 ? "analysis" : "spare";
  if (replica.node >= 0) return replica.leads ? "leader" : "follower";
  return !replica.member ? "spare" : replica.drained ? "drained" : "dead";
}

}  // namespace crane::launcher
