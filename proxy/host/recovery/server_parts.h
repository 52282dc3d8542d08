// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the node knows of its server, and a checkpoint keeps: references to the parts that own it.
//
// Threads: the node's one thread.

#include <functional>
#include <vector>

#include "dmt/layout.h"
#include "proxy/host/config.h"
#include "proxy/host/live_check.h"
#include "proxy/host/log_intake.h"
#include "proxy/host/outputs.h"
#include "proxy/host/recovery/node_state.h"
#include "proxy/host/segment.h"
#include "proxy/host/server_exit.h"
#include "proxy/host/server_monitor.h"
#include "proxy/host/slot0.h"
#include "proxy/host/stall_watch.h"
#include "proxy/replica/role/leadership.h"
#include "proxy/replica/step.h"

namespace crane::node {

// Takes what happened to the server's checkpoints, for the machine that decides (recovery.h).
class EventSink {
 public:
  virtual void feed(replica::Event event) = 0;

 protected:
  ~EventSink() = default;
};

struct ServerParts {
  const Config& config;
  Segment& segment;
  dmt::Layout& layout;  // of `segment`
  Slot0& slot0;
  ServerMonitor& monitor;
  Outputs& outputs;
  StallWatch& stalls;
  LogIntake& intake;
  const LiveCheck& live_check;
  const replica::Leadership& leadership;
  const ServerExit& exit;
  // Hands on what the server has put out.
  std::function<void()> drain;
  // What consensus wants to have in a checkpoint (Consensus::group_facts).
  std::function<std::vector<std::byte>()> group_facts;

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
