// SPDX-License-Identifier: Apache-2.0
// Carries out the actions of the group's supervisor.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/kept.h"
#include "runtime/control/channel.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/return_notice.h"
#include "runtime/launcher/run/group.h"
#include "runtime/setup/service_manager.h"

namespace crane::launcher {

using Json = nlohmann::json;

// Handles the event and then those that its actions cause (SUP-S1).
void Group::step(supervise::Event event) {
  events_.push_back(std::move(event));
  if (std::exchange(steps_, true)) return;
  bool changed = !std::holds_alternative<supervise::Tick>(events_.front());
  for (; !events_.empty(); events_.pop_front()) {
    const auto actions = supervisor_.step(events_.front(), now_ms());
    changed = changed || !actions.empty();
    for (const auto& action : actions) {
      std::visit([this](const auto& a) { carry_out(a); }, action);
    }
  }
  steps_ = false;
  if (changed) write_state();
}

void Group::carry_out(const supervise::StartNode& a) {
  const Outcome started = start_node(at(a.replica), a.plan);
  if (started) return step(supervise::Started{a.replica});
  step(supervise::NotStarted{a.replica, started.error()});
}

std::string Group::configuration(int number, const supervise::Plan& plan) const {
  NodeSetup setup{options_,
                  profile_,
                  parts_,
                  directories_.dir(),
                  directories_.shm_dir(),
                  program_,
                  number,
                  record_.log_id,
                  record_.secret,
                  plan,
                  lasting_.keeps_files()};
  return node_configuration(setup);
}

Outcome Group::start_node(Replica& replica, const supervise::Plan& plan) {
  replica.oom_kills = OomKills();
  const std::string home = home_of(replica.number);
  const std::string file = home + "/config.json";
  if (auto p = write_file(file, configuration(replica.number, plan)); !p) return p;
  auto channel = control::make_channel();
  if (!channel) {
    return failure(Status::kSystem, "cannot start a node", channel.error().what,
                   strerror(channel.error().detail), "see the limits of this machine");
  }
  open_channel(replica, channel.value().first);
  replica.node = spawn_node(parts_.node, file, channel.value().second,
                            options_.verbose && !options_.background ? "" : home + "/node.out");
  close(channel.value().second);
  if (replica.node < 0) {
    return failure(Status::kSystem, "cannot start a node", parts_.node, strerror(errno),
                   "see the limits of this machine");
  }
  replica.server = -1;
  replica.introduces = false;
  replica.pending_listens.clear();
  output_.watch(replica.number, home + "/server.log");
  detail("replica " + std::to_string(replica.number) + ": node " + std::to_string(replica.node));
  return Done{};
}

void Group::carry_out(const supervise::EndNode& a) {
  a.signal == 0 ? send(at(a.replica), {{"t", "stop"}}) : kill_node(at(a.replica), a.signal);
}

void Group::kill_node(const Replica& replica, int signal) {
  if (replica.pidfd >= 0) {
    syscall(SYS_pidfd_send_signal, replica.pidfd, signal, nullptr, 0);
  } else if (replica.node > 0) {
    kill(replica.node, signal);
  } else if (const pid_t pid = replica.recorded_pid; pid > 0) {
    std::string name;
    std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> std::ws, name);
    const bool ours = name == "crane-node" && node_lives(directories_.shm_dir(), replica.number);
    if (ours) kill(pid, signal);
  }
}

void Group::carry_out(const supervise::SignalServers& a) {
  send(at(a.leader), {{"t", "signal"}, {"signo", profile_.stop_signal}});
}

void Group::carry_out(const supervise::AskCheckpoint& a) {
  send(at(a.leader), {{"t", "checkpoint"}});
}

void Group::carry_out(const supervise::AskMember& a) {
  send(at(a.leader), {{"t", "member"}, {"change", a.change}, {"replica", a.replica}});
}

// Only looks whether there is a checkpoint; the node checks whether it is complete.
void Group::carry_out(const supervise::LookForCheckpoint& a) {
  const std::string digest =
      checkpoint::digest_of_log(options_.name, number_of_log(record_.log_id));
  const auto kept = checkpoint::find_kept(directories_.dir()).checkpoints;
  const bool there = std::any_of(kept.begin(), kept.end(), [&digest](const auto& one) {
    return one.listed.belongs_to(digest);
  });
  step(supervise::CheckpointLookup{a.replica, there});
}

void Group::carry_out(const supervise::PrintMessage& a) {
  if (start_line_) start_line_->hide();
  print_message(a.text, a.level);
}

void Group::carry_out(const supervise::Detail& a) { detail(a.text); }

void Group::carry_out(const supervise::WriteNotice& a) { write_notice(home_of(a.replica), a); }

void Group::carry_out(const supervise::RemoveNotice& a) { remove_notice(home_of(a.replica)); }

void Group::carry_out(const supervise::KeepLogs&) { directories_.keep_logs(); }

void Group::carry_out(const supervise::Stopping&) { setup::service_manager().stopping(); }

void Group::carry_out(const supervise::Answer& a) { answer_ = answer_of(a); }

// --- the analysis replica -----------------------------------------------------------------------

void Group::carry_out(const supervise::AnalysisReleased& a) {
  print_message("analysis replica " + std::to_string(a.replica) + " is gone: " + a.why +
                "; the group continues without it" +
                (has_report() ? "; its findings are in " + report() : std::string()));
}

bool Group::has_report() const {
  std::error_code ignored;
  return std::filesystem::exists(report(), ignored);
}

// Reports where the findings are; if there are none, removes all traces of the analysis.
void Group::end_analysis() const {
  if (options_.analysis.empty()) return;
  if (has_report()) print_message("the findings of " + options_.analysis + " are in " + report());
  const std::string place = std::to_string(options_.analysis_place());
  std::error_code ignored;
  std::filesystem::remove(options_.analysis_dir + "/replica-" + place + ".history", ignored);
  (void)rmdir(options_.analysis_dir.c_str());
  // Remove the shared memory of analysis nodes that were killed with all their processes.
  const std::string memory = "crane." + options_.name + ".r" + place + ".";
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    if (entry.path().filename().string().rfind(memory, 0) != 0) continue;
    std::error_code failed;
    std::filesystem::remove_all(entry.path(), failed);
  }
}

}  // namespace crane::launcher
