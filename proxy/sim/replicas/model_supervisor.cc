// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_supervisor.h"

#include <signal.h>

#include <utility>
#include <variant>

#include "proxy/sim/replicas/world.h"
#include "runtime/setup/exit_status.h"

namespace crane::replica::sim {
namespace {

supervise::Settings settings_for(const ReplicaWorld& world) {
  supervise::Settings s;
  s.places = s.members = static_cast<int>(world.replicas());
  s.group = s.dir = s.shm_dir = "world";
  return s;
}

}  // namespace

ModelSupervisor::ModelSupervisor(ReplicaWorld& world)
    : world_(world), machine_(settings_for(world)) {}

void ModelSupervisor::node_ended(unsigned id, ModelReplica::End how) {
  const int replica = static_cast<int>(id);
  if (how == ModelReplica::End::kKilled) {
    return hear(supervise::NodeEnded{.replica = replica, .wait = SIGKILL});
  }
  const auto status = how == ModelReplica::End::kRestarts ? node::ExitStatus::kTooFarBehind
                                                          : node::ExitStatus::kNoCheckpoint;
  hear(supervise::Fatal{replica, node::code(status), "it says why"});
  hear(supervise::NodeEnded{.replica = replica, .wait = node::code(status) << 8});
}

void ModelSupervisor::server_runs(unsigned id) {
  hear(supervise::Said{static_cast<int>(id), supervise::Word::kReady});
}

void ModelSupervisor::step() {
  const ModelLog& log = world_.log();
  if (log.leader() != kNone && log.view() != view_) {
    view_ = log.view();
    hear(supervise::Role{static_cast<int>(log.leader()), true, value(view_) / 256});
  }
  hear(supervise::Tick{});
}

void ModelSupervisor::hear(supervise::Event event) {
  events_.push_back(std::move(event));
  run();
}

void ModelSupervisor::run() {
  if (runs_ || !world_.supervised()) return;
  runs_ = true;
  while (!events_.empty()) {
    const supervise::Event next = std::move(events_.front());
    events_.pop_front();
    for (const supervise::Action& action : machine_.step(next, world_.now_ns() / kMs)) {
      std::visit([this](const auto& a) { carry_out(a); }, action);
    }
  }
  runs_ = false;
}

// Its node may end at once, which is heard after Started.
void ModelSupervisor::carry_out(const supervise::StartNode& action) {
  using From = supervise::Plan::From;
  hear(supervise::Started{action.replica});
  BeginRules rules;
  rules.restores = rules.may_begin =
      action.plan.from == From::kCheckpoint || action.plan.from == From::kLog;
  rules.skips = action.plan.from == From::kLog;
  world_.replica(static_cast<unsigned>(action.replica)).start(rules);
}

void ModelSupervisor::carry_out(const supervise::AskCheckpoint& action) {
  world_.replica(static_cast<unsigned>(action.leader)).hear(CheckpointHelps{});
}

void ModelSupervisor::carry_out(const supervise::LookForCheckpoint& action) {
  hear(supervise::Facts{action.replica, !world_.checkpoints().empty()});
}

void ModelSupervisor::carry_out(const supervise::Say& action) {
  world_.tell("crane-run: %s", action.text.c_str());
}

void ModelSupervisor::carry_out(const supervise::Stopping&) {
  world_.violate("ENDED: crane-run ends the group: " + machine_.problem().error().text);
}

}  // namespace crane::replica::sim
