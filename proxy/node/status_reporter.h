// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gathers a node's status from the parts that know it, and writes status.json.
//
// Threads: the node's one thread.

#include <cstdint>
#include <string>

#include "consensus/consensus.h"
#include "proxy/clients/server.h"
#include "proxy/node/config.h"
#include "proxy/node/host_role.h"
#include "proxy/node/live_check.h"
#include "proxy/node/log_intake.h"
#include "proxy/node/proposals.h"
#include "proxy/node/recovery/recovery.h"
#include "proxy/node/replica_server.h"
#include "proxy/node/service.h"
#include "proxy/node/serving_watch.h"
#include "proxy/node/stall_watch.h"
#include "proxy/node/status.h"

namespace crane::node {

// All outlive the reporter; no `host`: a crane-run has started this node.
struct StatusSources {
  const Config& config;
  consensus::Consensus& group;
  ReplicaServer& server;
  const StallWatch& stalls;
  const LiveCheck& live_check;
  const LogIntake& intake;
  const proxy::Proxy& proxy;
  const Proposals& proposals;
  const Service& service;
  Recovery& recovery;
  const HostRole* host;
};

class StatusReporter {
 public:
  explicit StatusReporter(const StatusSources& sources) : from_(sources) {}

  NodeStatus status();
  // Writes status.json.
  void report();
  // Looks whether the server takes its clients, now and then.
  void step(std::int64_t now_ns);

 private:
  // Says so, once, when no thread of the server can go on.
  void look_for_stuck(std::int64_t now_ns);
  // What one of its threads waits for; empty: some can go on.
  std::string stuck_;
  std::uint64_t stuck_clock_ = 0;  // of the first look that found it so; 0: none did
  std::int64_t stuck_ns_ = 0;

  StatusSources from_;
  ServingWatch serving_;
};

}  // namespace crane::node
