// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-run in a world of replicas: the production's supervise::Supervisor, in a shell that starts
// model nodes.  While it is stopped, what happens waits for it.
//
// Threads: one.

#include <cstdint>
#include <deque>
#include <utility>

#include "proxy/sim/replicas/model_replica.h"
#include "runtime/supervise/supervisor.h"

namespace crane::replica::sim {

class ModelSupervisor {
 public:
  explicit ModelSupervisor(ReplicaWorld& world);

  void begin() { hear(supervise::Start{}); }
  void node_ended(unsigned id, ModelReplica::End how);
  void server_runs(unsigned id);
  void step();
  // All have run: from here on a lost replica is brought back.
  bool serving() const { return machine_.serving(); }

 private:
  void hear(supervise::Event event);
  void run();
  void carry_out(const supervise::StartNode& action);
  void carry_out(const supervise::AskCheckpoint& action);
  void carry_out(const supervise::LookForCheckpoint& action);
  void carry_out(const supervise::Say& action);
  void carry_out(const supervise::Stopping&);
  template <typename Other>
  void carry_out(const Other&) {}

  ReplicaWorld& world_;
  supervise::Supervisor machine_;
  std::deque<supervise::Event> events_;
  bool runs_ = false;
  View view_{};  // whose leader it knows
};

}  // namespace crane::replica::sim
