// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/scenes.h"

#include <utility>

namespace crane::replica::sim {
namespace {

constexpr std::int64_t kS = 1'000 * kMs;

constexpr Fault kill(std::uint64_t point, unsigned replica) {
  return {point, FaultKind::kKill, replica, 0};
}

// As in search(): a log that has wrapped at the first checkpoint.
Settings small() {
  Settings s;
  s.ring_entries = 64;
  s.inputs_per_s = 640;
  s.busy_ns = 900 * kMs;
  return s;
}

// Servers that run what they missed for seconds, because no checkpoint is taken.
Settings long_replay() {
  Settings s;
  s.ring_entries = 1 << 16;
  s.inputs_per_s = 80;
  s.busy_ns = 8 * kS;
  s.runs_at_once = 1;
  return s;
}

Settings busy() {
  Settings s;
  s.ring_entries = 1024;
  s.inputs_per_s = 160;
  s.busy_ns = 8 * kS;
  return s;
}

Settings crashes() {
  Settings s = busy();
  s.crashes_by = 200;
  return s;
}

// A log that has wrapped, with a checkpoint, while clients talk.
Settings talking() {
  Settings s = small();
  s.inputs_per_s = 160;
  s.clients = 4;
  s.clients_seed = 6;  // some of these clients talk for long
  return s;
}

Settings with(Settings s, bool Settings::*what) {
  s.*what = true;
  return s;
}

// The faults found in use, by letter.
std::vector<Scene> found_scenes() {
  const Fault full{90, FaultKind::kFullDisk, 0, 1'500 * kMs};
  const Settings limited = with(busy(), &Settings::limited);
  return {
      {"A-caught-up",
       "followers that stop where the leader's server has passed return, one by one",
       limited,
       {kill(150, 1), kill(350, 2), kill(550, 0)},
       Mutant::kGoalMoves},
      {"A2-status",
       "the leader is lost while both followers run what they missed",
       long_replay(),
       {kill(400, 1), kill(420, 2), kill(500, 0)},
       Mutant::kReportReady},
      {"B-both",
       "both followers at once, with a log that has wrapped",
       small(),
       {kill(120, 1), kill(120, 2)},
       Mutant::kNeverFull},
      {"B-in-turn",
       "one follower after the other, with a log that has wrapped",
       small(),
       {kill(120, 1), kill(140, 2)},
       Mutant::kNeverFull},
      {"B-all",
       "all three at once, with a log that has wrapped",
       small(),
       {{120, FaultKind::kKillAll, 0, 0}},
       Mutant::kNeverFull},
      {"C1-packing",
       "both followers, while no checkpoint can be written",
       small(),
       {full, kill(120, 1), kill(140, 2)},
       Mutant::kForgetFailure},
      {"D-stopped",
       "the leader's server is stopped",
       busy(),
       {{200, FaultKind::kStopServer, 0, 4 * kS}},
       Mutant::kKeepLead},
      {"D-stopped-limited",
       "the leader's server is stopped, and the others wait for it",
       limited,
       {{200, FaultKind::kStopServer, 0, 4 * kS}},
       Mutant::kKeepLead},
      {"D-starved",
       "the leader's server gets a twentieth of a processor",
       busy(),
       {{200, FaultKind::kSlow, 0, 4 * kS}},
       Mutant::kKeepLead},
      {"E-store",
       "the leader is lost when a follower has just begun to run its store's log",
       with(long_replay(), &Settings::on_disk),
       {kill(400, 1), kill(402, 0)},
       Mutant::kStoreIsReady},
  };
}

// Scenes with each other kind of fault once.
std::vector<Scene> more_scenes() {
  return {
      {"F-all",
       "all nodes are killed while clients talk",
       talking(),
       {{250, FaultKind::kKillAll, 0, 0}},
       Mutant::kForgetClients},
      {"G-full",
       "a node is lost while the disks of all hosts are full",
       with(with(busy(), &Settings::on_disk), &Settings::hosts),
       {{200, FaultKind::kFullDisk, 0, 3 * kS}, kill(230, 1)},
       Mutant::kLeaveFull},
      {"crash",
       "an input crashes the server while a follower is absent",
       crashes(),
       {kill(100, 1)},
       Mutant::kSurviveCrash},
      {"refused",
       "CRIU refuses the server for a while",
       busy(),
       {{150, FaultKind::kRefuses, 0, 2 * kS}},
       Mutant::kKeepRefusal},
      {"upgrade",
       "a follower is lost while a server that does not listen is on trial",
       busy(),
       {{200, FaultKind::kUpgrade, 0, 0}, kill(230, 1)},
       Mutant::kNoRollback},
      {"restart",
       "the leader is lost while the servers are ended and begin again",
       busy(),
       {{200, FaultKind::kRestart, 0, 0}, kill(206, 0)},
       Mutant::kNone},
      {"flaw",
       "a replica begins at a checkpoint that lacks something",
       busy(),
       {{280, FaultKind::kFlaw, 0, 0}, {285, FaultKind::kFullDisk, 0, 8 * kS}, kill(290, 2)},
       Mutant::kTrustAll},
  };
}

}  // namespace

std::span<const Scene> scenes() {
  static const std::vector<Scene> all = [] {
    std::vector<Scene> list = found_scenes();
    for (Scene& scene : more_scenes()) list.push_back(std::move(scene));
    return list;
  }();
  return all;
}

Result run_scene(const Scene& scene, Mutant mutant, std::FILE* trace) {
  Settings settings = scene.settings;
  settings.mutant = mutant;
  settings.trace = trace;
  return ReplicaWorld(settings, scene.faults).run();
}

}  // namespace crane::replica::sim
