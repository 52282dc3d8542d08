// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-run in a world of replicas, or the agent of one host: the production's
// supervise::Supervisor, in a shell that starts model nodes.  While it is stopped, its events wait.
// An agent whose replica is over is restarted, as by systemd.
//
// Threads: one.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "proxy/sim/replicas/model_replica.h"
#include "runtime/supervise/supervisor.h"

namespace crane::replica::sim {

class ModelSupervisor {
 public:
  // `host`: the host of an agent.
  explicit ModelSupervisor(ReplicaWorld& world, std::optional<unsigned> host = {});

  void begin();
  // Its host is lost with it, until begin().
  void lose_host();
  void stop_until(std::int64_t ns) { stopped_until_ns_ = ns; }
  bool stopped() const;
  void node_ended(unsigned id, node::ExitStatus how);
  void server_runs(unsigned id);
  void server_exited(unsigned id);
  void caught_up(unsigned id);
  void refused(const std::string& why) { receive(supervise::Refused{why}); }
  void step();
  // All replicas have run: from now on a lost one is restarted.
  bool serving() const { return machine_->serving(); }

 private:
  void receive(supervise::Event event);
  void run();
  void carry_out(const supervise::StartNode& action);
  void carry_out(const supervise::AskCheckpoint& action);
  void carry_out(const supervise::LookForCheckpoint& action);
  void carry_out(const supervise::PrintMessage& action);
  void carry_out(const supervise::Stopping&);
  void carry_out(const supervise::EndNode& action);
  void carry_out(const supervise::Leave& action);
  void carry_out(const supervise::GiveUp&) { carry_out(supervise::Leave{}); }
  template <typename Other>
  void carry_out(const Other&) {}

  ReplicaWorld& world_;
  const std::optional<unsigned> host_;
  std::optional<supervise::Supervisor> machine_;
  std::deque<supervise::Event> events_;
  bool runs_ = false;
  bool lost_ = false;
  std::int64_t stopped_until_ns_ = 0;
  std::int64_t left_ns_ = 0;  // when its replica was over; 0: it is not
  View view_{};               // the view whose leader it knows
};

}  // namespace crane::replica::sim
