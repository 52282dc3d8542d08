// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gathers a node's status from its parts, and writes status.json and the events.
//
// Threads: the node's one thread.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "consensus/consensus.h"
#include "dmt/base/clock.h"
#include "proxy/clients/proxy.h"
#include "proxy/host/config.h"
#include "proxy/host/event_log.h"
#include "proxy/host/event_loop.h"
#include "proxy/host/host_role.h"
#include "proxy/host/live_check.h"
#include "proxy/host/log_intake.h"
#include "proxy/host/proposals.h"
#include "proxy/host/recovery/recovery.h"
#include "proxy/host/replica_server.h"
#include "proxy/host/service.h"
#include "proxy/host/slice_watch.h"
#include "proxy/host/stall_watch.h"
#include "proxy/host/status.h"
#include "proxy/host/stuck_watch.h"
#include "proxy/replica/role/leadership.h"
#include "proxy/replica/role/pacing.h"
#include "proxy/replica/status/self_report.h"
#include "runtime/control/verdict.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

// All must outlive the reporter.  `host` is nullptr if crane-run started this node.
struct StatusSources {
  const Config& config;
  consensus::Consensus& group;
  ReplicaServer& server;
  const StallWatch& stalls;
  const SliceWatch& slices;
  const LiveCheck& live_check;
  const LogIntake& intake;
  const EventLoop& loop;
  const replica::Leadership& leadership;
  const replica::ProgressReporter& progress;
  const proxy::Proxy& proxy;
  const Proposals& proposals;
  const Service& service;
  Recovery& recovery;
  const HostRole* host;
};

class StatusReporter {
 public:
  explicit StatusReporter(const StatusSources& sources);

  // Also requests a new report from peers with an old one; it counts from the next status on.
  NodeStatus status();
  // The answer to an operator's status request.
  nlohmann::json answer();
  // Writes status.json, which may take as long as an election.
  void report();
  // The node ends with this status.
  void leaves(ExitStatus status);
  // An operator drains this replica: tells the peers, which would regard it as lost otherwise.
  void is_drained();
  // The status has changed: it is written soon, after the work that clients wait for.
  void changed(std::int64_t now_ns) noexcept { own_.changed(now_ns); }
  // Reports changes, also to the peers.  At intervals checks whether the server accepts its clients
  // and can continue.
  void step(std::int64_t now_ns);
  std::int64_t due_ns() const noexcept { return own_.due_ns(); }
  // The last report of a peer, or this replica's own; nullopt: none since the peer connected.
  std::optional<control::Readiness> reported(ReplicaId peer) const {
    if (value(peer) == from_.config.replica) return readiness(glance(), false, monotonic_ns());
    return own_.notes().reported(peer);
  }
  void on_report(ReplicaId from, const replica::PeerNote& note, std::int64_t now_ns) {
    own_.notes().on_report(from, note, now_ns);
  }
  void on_report(ReplicaId from, const replica::DrainedNote& note) {
    own_.notes().on_drained(from, note);
  }
  void on_report(ReplicaId from, const replica::HostNote& note) {
    own_.notes().on_host(from, note);
  }

 private:
  replica::Glance glance() const;
  replica::HostNote host_note() const;
  void look(std::int64_t now_ns);
  bool takes_clients() const;
  bool no_room() const;
  control::Readiness readiness(const replica::Glance& seen, bool needs_checkpoint,
                               std::int64_t now_ns) const;
  void send_notes(const replica::Glance& seen, std::int64_t now_ns);
  void describe_peers(NodeStatus& status, std::int64_t now_ns);

  StatusSources from_;
  EventLog events_;
  StuckWatch stuck_;
  const std::int64_t begun_unix_s_;
  replica::SelfReport own_;
};

}  // namespace crane::node
