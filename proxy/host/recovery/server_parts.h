// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the node knows of its server, and a checkpoint keeps: references to the parts that own it.
//
// Threads: the node's one thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dmt/layout.h"
#include "proxy/clients/woken.h"
#include "proxy/host/config.h"
#include "proxy/host/live_check.h"
#include "proxy/host/log_intake.h"
#include "proxy/host/outputs.h"
#include "proxy/host/recovery/node_state.h"
#include "proxy/host/scheduler_link.h"
#include "proxy/host/segment.h"
#include "proxy/host/server_exit.h"
#include "proxy/host/server_monitor.h"
#include "proxy/host/stall_watch.h"
#include "proxy/replica/role/leadership.h"
#include "proxy/replica/step.h"
#include "runtime/control/verdict.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

// Takes what happened to the server's checkpoints, for the machine that decides (recovery.h).
class EventSink {
 public:
  virtual void feed(replica::Event event) = 0;

 protected:
  ~EventSink() = default;
};

// The node, which knows the other parts.
class RecoveryOwner : public proxy::Woken {
 public:
  virtual Result<Index> propose(EntryType type, GrantTurns grant,
                                std::span<const std::byte> body) = 0;
  virtual GrantTurns input_grant() const = 0;
  // While this replica leads: how far a follower's server is behind its own.
  virtual std::int64_t lag_ns(ReplicaId who) const = 0;
  // What a replica says of itself, this one as well; nullopt: nothing is known.
  virtual std::optional<control::Readiness> readiness_of(ReplicaId who) const = 0;
  // As if the server had put it out.
  virtual void put_out_for_server(const OutputHeader& header, std::span<const std::byte> bytes) = 0;
  // What keeps_back() kept back, one after the other; `last`: the server is up.
  virtual void let_in(const OutputHeader& header, const ListenPlace& place, bool last) = 0;
  // Why CRIU does not dump this server, for crane-run; empty: it does.
  virtual void refusal_changed(const std::string& reason) = 0;
  // The replica has run what it missed.
  virtual void caught_up() = 0;
  // Hands on what the server has put out.
  virtual void drain_server() = 0;
  // What consensus wants to have in a checkpoint (Consensus::group_facts).
  virtual std::vector<std::byte> group_facts() const = 0;
  // The replica cannot go on.
  virtual void fail(ExitStatus status, const std::string& why) = 0;

 protected:
  ~RecoveryOwner() = default;
};

struct ServerParts {
  const Config& config;
  Segment& segment;
  dmt::Layout& layout;  // of `segment`
  SchedulerLink& scheduler_link;
  ServerMonitor& monitor;
  Outputs& outputs;
  StallWatch& stalls;
  LogIntake& intake;
  const LiveCheck& live_check;
  const replica::Leadership& leadership;
  const ServerExit& exit;
  RecoveryOwner& owner;

  bool runs() const { return !exit.exited() && monitor.running() && monitor.pid() >= 0; }
  Index applied() const noexcept {
    return Index{layout.scheduler.applied_index.load(std::memory_order_acquire)};
  }
};

// Where in the log a state is of.
void note_place(NodeState& state, const consensus::EntryView& entry, std::vector<std::byte> facts);
// What the parts know at this moment of the schedule: all but the place and the server's log.
// `clock`, `hash`: of the schedule.
void note_parts(NodeState& state, const ServerParts& parts, std::uint64_t clock,
                std::uint64_t hash);
// How long the server's log is.
std::uint64_t server_log_bytes(const Config& config);

}  // namespace crane::node
