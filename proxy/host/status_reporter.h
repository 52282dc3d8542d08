// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gathers a node's status from the parts that know it, and writes status.json and the events that
// made it what it is.
//
// Threads: the node's one thread.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "consensus/consensus.h"
#include "dmt/base/clock.h"
#include "proxy/clients/server.h"
#include "proxy/host/config.h"
#include "proxy/host/event_log.h"
#include "proxy/host/event_loop.h"
#include "proxy/host/host_role.h"
#include "proxy/host/live_check.h"
#include "proxy/host/log_intake.h"
#include "proxy/host/peer_notes.h"
#include "proxy/host/proposals.h"
#include "proxy/host/recovery/recovery.h"
#include "proxy/host/replica_server.h"
#include "proxy/host/service.h"
#include "proxy/host/serving_watch.h"
#include "proxy/host/stall_watch.h"
#include "proxy/host/status.h"
#include "proxy/host/stuck_watch.h"
#include "proxy/replica/role/leadership.h"
#include "proxy/replica/role/pacing.h"
#include "runtime/control/verdict.h"
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

  // Asks peers whose word is old for a new one, which counts from the next status on.
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
  // Reports what has changed, also to the peers; looks whether the server takes its clients and can
  // go on, now and then.
  void step(std::int64_t now_ns);
  std::int64_t due_ns() const noexcept {
    return std::min({report_at_ns_, notes_.due_ns(), tell_at_ns_, look_at_ns_});
  }
  // What a peer has told of itself, or what this replica would; nullopt: nothing since it is there.
  std::optional<control::Readiness> told(ReplicaId who) const {
    if (value(who) == from_.config.replica) return readiness(false, monotonic_ns());
    return notes_.told(who);
  }
  void heard(ReplicaId from, const PeerNote& note, std::int64_t now_ns) {
    notes_.heard(from, note, now_ns);
  }

 private:
  static constexpr std::int64_t kReportAfterNs = 20'000'000;
  static constexpr std::int64_t kMovesNs = 50'000'000;

  // What events are made of, as far as nothing else tells that it has changed.
  struct Mark {
    std::int64_t server_pid = -1;
    std::uint64_t divergences = 0, checkpoints = 0;
    bool catches_up = false;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const;
  // What of a note costs nothing to look at.
  struct Told {
    consensus::Role role = consensus::Role::kFollower;
    View view{};
    unsigned answering = 0;  // of the voters
    bool takes_clients = false;
    bool no_room = false;
    std::int64_t server_pid = -1;
    std::string not_serving;
    bool operator==(const Told&) const = default;
  };
  void look(std::int64_t now_ns);
  bool takes_clients() const;
  bool no_room() const;
  control::Readiness readiness(bool needs_checkpoint, std::int64_t now_ns) const;
  void tell_peers(std::int64_t now_ns);
  void describe_peers(NodeStatus& status, std::int64_t now_ns);

  StatusSources from_;
  EventLog events_;
  Mark mark_;
  std::int64_t report_at_ns_ = proxy::kNever;
  ServingWatch serving_;
  StuckWatch stuck_;
  std::string not_serving_;  // as of the last look
  std::int64_t look_at_ns_ = proxy::kNever;
  PeerNotes notes_;
  Told told_;
  std::int64_t tell_at_ns_ = 0;  // when to look again at what changes by itself
};

}  // namespace crane::node
