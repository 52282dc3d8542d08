// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gathers a node's status from the parts that know it, and writes status.json and the events that
// made it what it is.
//
// Threads: the node's one thread.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "consensus/consensus.h"
#include "proxy/clients/server.h"
#include "proxy/node/config.h"
#include "proxy/node/event_log.h"
#include "proxy/node/event_loop.h"
#include "proxy/node/host_role.h"
#include "proxy/node/leadership.h"
#include "proxy/node/live_check.h"
#include "proxy/node/log_intake.h"
#include "proxy/node/pacing.h"
#include "proxy/node/proposals.h"
#include "proxy/node/recovery/recovery.h"
#include "proxy/node/replica_server.h"
#include "proxy/node/service.h"
#include "proxy/node/serving_watch.h"
#include "proxy/node/stall_watch.h"
#include "proxy/node/status.h"
#include "proxy/node/stuck_watch.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

// All outlive the reporter; no `host`: a crane-run has started this node.
struct StatusSources {
  const Config& config;
  consensus::Consensus& group;
  ReplicaServer& server;
  const StallWatch& stalls;
  const LiveCheck& live_check;
  const LogIntake& intake;
  const EventLoop& loop;
  const Leadership& leadership;
  const ProgressReporter& progress;
  const proxy::Proxy& proxy;
  const Proposals& proposals;
  const Service& service;
  Recovery& recovery;
  const HostRole* host;
};

class StatusReporter {
 public:
  explicit StatusReporter(const StatusSources& sources);

  NodeStatus status();
  // What an operator is answered.
  nlohmann::json answer();
  // Writes status.json, which takes as long as an election.
  void report();
  // The node ends with this status.
  void leaves(ExitStatus status);
  // What it says has changed: it is written soon, behind what clients wait for.
  void changed(std::int64_t now_ns) noexcept {
    report_at_ns_ = std::min(report_at_ns_, now_ns + kReportAfterNs);
  }
  // Reports what has changed; looks whether the server takes its clients and can go on, now and
  // then.
  void step(std::int64_t now_ns);
  std::int64_t due_ns() const noexcept { return report_at_ns_; }

 private:
  static constexpr std::int64_t kReportAfterNs = 20'000'000;

  // What events are made of, as far as nothing else tells that it has changed.
  struct Mark {
    std::int64_t server_pid = -1;
    std::uint64_t divergences = 0, checkpoints = 0;
    bool catches_up = false;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const;
  void look(std::int64_t now_ns);

  StatusSources from_;
  EventLog events_;
  Mark mark_;
  std::int64_t report_at_ns_ = proxy::kNever;
  ServingWatch serving_;
  StuckWatch stuck_;
};

}  // namespace crane::node
