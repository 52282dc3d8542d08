// SPDX-License-Identifier: Apache-2.0
// Who of a running group has a node: those who come, return, leave for a while, or for good.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/kept.h"
#include "runtime/launcher/channel.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/group.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

// A checkpoint that was asked for and is not there is asked for again.
constexpr std::int64_t kAskAgainMs = 5'000;

std::string name_of(int number) { return "replica " + std::to_string(number); }

}  // namespace

bool Group::start_again(Replica& replica, const Begin& begin) {
  if (const Problem p = start_node(replica, begin); !p.none()) {
    replica.problem = p;
    return false;
  }
  replica.problem = {};
  replica.server = -1;
  replica.ready = replica.drained = replica.removed = replica.waits = false;
  write_state();
  return true;
}

// A replica of a group that serves returns with the newest checkpoint of the group, if there is
// one.
bool Group::comes_back(Replica& replica) {
  const Status status = replica.problem.status;
  const bool goes_on = alive() * 2 > voters();
  if (phase_ != Phase::kServing || status == Status::kUnhooked || !goes_on) return false;
  // Its node looks which one of them is whole.
  replica.waits = checkpoint::find_kept(directories_.dir()).checkpoints.empty();
  if (replica.waits) return false;
  // Who waited for a newer checkpoint has made no attempt that failed.
  if (!replica.returns.once_more(status != Status::kTooFarBehind)) return false;
  directories_.keep_logs();
  say(replica.problem.text);
  return start_at_checkpoint(replica);
}

bool Group::start_at_checkpoint(Replica& replica) {
  Begin begin;
  begin.restores = true;
  if (!start_again(replica, begin)) return false;
  say(name_of(replica.number) + " comes back from a checkpoint");
  replica.returns.begins();
  return true;
}

// There will be no checkpoint: it runs all inputs, if the others' logs still have them.
void Group::start_from_beginning(Replica& replica) {
  if (!replica.returns.once_more()) return;
  directories_.keep_logs();
  Begin begin;
  begin.restores = begin.may_begin = true;
  if (!start_again(replica, begin)) return say(replica.problem.text);
  say(name_of(replica.number) + " runs all inputs again: there is no checkpoint, because " +
      refused_);
  replica.returns.begins();
}

bool Group::somebody_waits() const {
  return phase_ == Phase::kServing &&
         std::any_of(replicas_.begin(), replicas_.end(), [](const Replica& r) { return r.waits; });
}

// For those who were lost before there was any.
void Group::look_for_checkpoints() {
  if (!somebody_waits()) return;
  if (checkpoint::find_kept(directories_.dir()).checkpoints.empty()) {
    if (!refused_.empty()) {
      for (Replica& replica : replicas_) {
        if (std::exchange(replica.waits, false) && replica.node < 0) start_from_beginning(replica);
      }
      return;
    }
    if (now_ms() - asked_ms_ < kAskAgainMs || leader() < 0) return;
    asked_ms_ = now_ms();
    const auto to = static_cast<std::size_t>(leader());
    send_message(replicas_[to].channel, Json{{"t", "checkpoint"}}.dump());
    return;
  }
  for (Replica& replica : replicas_) {
    if (!std::exchange(replica.waits, false) || replica.node >= 0) continue;
    if (!start_at_checkpoint(replica)) say(replica.problem.text);
  }
}

// Its node ended because it was told to: nobody misses it.
bool Group::is_gone(Replica& replica) {
  if (!replica.removed && !replica.drained) return false;
  replica.problem = {};
  replica.ready = false;
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
    replica.waits = replica.waits && is_member;
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
      say(replica.problem.text);
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
    say(replica.problem.text);
  }
}

const char* Group::role_of(const Replica& replica) const {
  if (analyses(replica)) return replica.node >= 0 ? "analysis" : "spare";
  if (replica.node >= 0) return replica.leads ? "leader" : "follower";
  return !replica.member ? "spare" : replica.drained ? "drained" : "dead";
}

}  // namespace crane::launcher
