// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_supervisor.h"

#include <signal.h>
#include <sys/wait.h>

#include <utility>
#include <variant>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

constexpr int kCrash = 128 + SIGSEGV;
// RestartSec and RestartPreventExitStatus of the packaged unit of a host.
constexpr std::int64_t kUnitNs = 200 * kMs;
bool stays_dead(int code) {
  using node::ExitStatus;
  return code == node::code(ExitStatus::kBadConfiguration) ||
         code == node::code(ExitStatus::kLeftGroup) || code == node::code(ExitStatus::kDisagrees) ||
         code == node::code(ExitStatus::kNotHere);
}

supervise::Settings settings_for(const ReplicaWorld& world, std::optional<unsigned> host) {
  supervise::Settings s;
  s.first = static_cast<int>(host.value_or(0));
  s.places = s.members = host ? 1 : static_cast<int>(world.replicas());
  s.host = host.has_value();
  s.on_disk = world.settings().on_disk;
  s.group = s.dir = s.shm_dir = "world";
  return s;
}

}  // namespace

ModelSupervisor::ModelSupervisor(ReplicaWorld& world, std::optional<unsigned> host)
    : world_(world), host_(host), machine_(settings_for(world, host)) {}

void ModelSupervisor::begin() {
  if (std::exchange(lost_, false)) machine_.emplace(settings_for(world_, host_));
  receive(supervise::Start{});
}

bool ModelSupervisor::stopped() const { return world_.now_ns() < stopped_until_ns_; }

void ModelSupervisor::lose_host() {
  lost_ = true;
  stopped_until_ns_ = left_ns_ = 0;
  events_.clear();
}

void ModelSupervisor::node_ended(unsigned id, node::ExitStatus how) {
  const int replica = static_cast<int>(id), code = node::code(how);
  if (how == node::ExitStatus::kServerDied) {
    return receive(supervise::NodeEnded{.replica = replica, .wait = SIGKILL});
  }
  receive(supervise::Fatal{replica, code, "it says why"});
  receive(supervise::NodeEnded{.replica = replica, .wait = code << 8});
}

void ModelSupervisor::server_runs(unsigned id) {
  using supervise::Report;
  receive(supervise::Reported{static_cast<int>(id), host_ ? Report::kServes : Report::kReady});
}

void ModelSupervisor::caught_up(unsigned id) {
  receive(supervise::Reported{static_cast<int>(id), supervise::Report::kCaughtUp});
}

// An agent notices the end of its node, which ends with its server's status.
void ModelSupervisor::server_exited(unsigned id) {
  const int replica = static_cast<int>(id);
  if (!host_)
    return receive(supervise::ServerExit{replica, kCrash, supervise::ExitReason::kSignal});
  receive(supervise::NodeEnded{.replica = replica, .wait = kCrash << 8});
}

void ModelSupervisor::step() {
  if (lost_) return;
  if (left_ns_ != 0 && world_.now_ns() >= left_ns_ + kUnitNs) {
    left_ns_ = 0;
    machine_.emplace(settings_for(world_, host_));
    return begin();
  }
  const ModelLog& log = world_.log();
  if (log.leader() != kNone && log.view() != view_) {
    view_ = log.view();
    receive(supervise::Role{static_cast<int>(log.leader()), true, value(view_) / 256});
  }
  receive(supervise::Tick{});
}

void ModelSupervisor::receive(supervise::Event event) {
  if (lost_) return;
  events_.push_back(std::move(event));
  run();
}

void ModelSupervisor::run() {
  if (runs_ || stopped()) return;
  runs_ = true;
  while (!events_.empty()) {
    const supervise::Event next = std::move(events_.front());
    events_.pop_front();
    for (const supervise::Action& action : machine_->step(next, world_.now_ns() / kMs)) {
      std::visit([this](const auto& a) { carry_out(a); }, action);
    }
  }
  runs_ = false;
}

// Its node may end at once; that event follows Started.
void ModelSupervisor::carry_out(const supervise::StartNode& action) {
  using From = supervise::Plan::From;
  const auto id = static_cast<unsigned>(action.replica);
  receive(supervise::Started{action.replica});
  BeginRules rules;
  rules.restores = rules.may_begin =
      action.plan.from == From::kCheckpoint || action.plan.from == From::kLog;
  rules.skips = action.plan.from == From::kLog;
  world_.replica(id).start(host_ ? world_.rules_on_host(id) : rules);
}

void ModelSupervisor::carry_out(const supervise::AskCheckpoint& action) {
  world_.replica(static_cast<unsigned>(action.leader)).receive(CheckpointSuggested{});
}

void ModelSupervisor::carry_out(const supervise::LookForCheckpoint& action) {
  const auto id = static_cast<unsigned>(action.replica);
  receive(supervise::CheckpointLookup{action.replica, !world_.hosts().seen_by(id).empty()});
}

void ModelSupervisor::carry_out(const supervise::PrintMessage& action) {
  if (host_) return world_.trace_line("agent %u: %s", *host_, action.text.c_str());
  world_.trace_line("crane-run: %s", action.text.c_str());
}

void ModelSupervisor::carry_out(const supervise::Stopping&) {
  if (!host_) world_.group_ends(machine_->problem(), machine_->status());
}

void ModelSupervisor::carry_out(const supervise::EndNode& action) {
  world_.replica(static_cast<unsigned>(action.replica)).kill();
}

// The group's memory on the host ends with the agent.
void ModelSupervisor::carry_out(const supervise::Leave& action) {
  if (!host_) return;
  world_.trace_line("agent %u: its replica is over", *host_);
  if (WEXITSTATUS(action.wait) == kCrash) return world_.replica_leaves(*host_);
  world_.log().lose_power(*host_);
  if (!world_.settings().on_disk) world_.hosts().seen_by(*host_).clear();
  left_ns_ = stays_dead(WEXITSTATUS(action.wait)) ? 0 : world_.now_ns();
}

}  // namespace crane::replica::sim
