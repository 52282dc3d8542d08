// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parts of the node whose state goes into a checkpoint: references to their owners.
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

// Takes events about the server's checkpoints for the recovery machine (recovery.h).
class EventSink {
 public:
  virtual void feed(replica::Event event) = 0;

 protected:
  ~EventSink() = default;
};

// The node, which connects recovery to its other parts.
class RecoveryOwner : public proxy::Woken {
 public:
  virtual Result<Index> propose(EntryType type, GrantTurns grant,
                                std::span<const std::byte> body) = 0;
  virtual GrantTurns input_grant() const = 0;
  // While this replica leads: how far a follower's server is behind its own.
  virtual std::int64_t lag_ns(ReplicaId peer) const = 0;
  // The last report of a replica, including this one; nullopt: unknown.
  virtual std::optional<control::Readiness> readiness_of(ReplicaId peer) const = 0;
  // Handles this record as if the server had written it.
  virtual void put_out_for_server(const OutputHeader& header, std::span<const std::byte> bytes) = 0;
  // Called for each record that holds_back() held back.  `last` is true for the last one: then the
  // server is up.
  virtual void release_output(const OutputHeader& header, const ListenPlace& place, bool last) = 0;
  // Why CRIU does not dump this server, for crane-run; empty: it does.
  virtual void refusal_changed(const std::string& reason) = 0;
  // The replica has run the entries that it missed.
  virtual void caught_up() = 0;
  // Passes on the server's output.
  virtual void drain_server() = 0;
  // The state that consensus needs in a checkpoint (Consensus::group_facts).
  virtual std::vector<std::byte> group_facts() const = 0;
  // The replica cannot continue.
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

// Sets the log position of a state.
void note_place(NodeState& state, const consensus::EntryView& entry, std::vector<std::byte> facts);
// Sets the state of the parts as of now: all but the position and the server's log.  `clock`,
// `hash`: of the schedule.
void note_parts(NodeState& state, const ServerParts& parts, std::uint64_t clock,
                std::uint64_t hash);
// The length of the server's log.
std::uint64_t server_log_bytes(const Config& config);

}  // namespace crane::node
