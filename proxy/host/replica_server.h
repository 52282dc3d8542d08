// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server of this replica: its segment, its processes (server_monitor.h), its output, and its
// end.  Output is hashed and recorded before it is passed on.
//
// Threads: the node's one thread, inside its event loop.
// INVARIANT SERVER-1  Each record of the output ring is passed on once, in order, after Outputs and
//                     the position of lasting files have noted it (LAST-3).

#include <event2/event.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "dmt/node_link.h"
#include "dmt/sequence/output.h"
#include "proxy/host/config.h"
#include "proxy/host/gathered_output.h"
#include "proxy/host/load_trials.h"
#include "proxy/host/mode.h"
#include "proxy/host/outputs.h"
#include "proxy/host/recovery/lasting_files.h"
#include "proxy/host/recovery/starting_point.h"
#include "proxy/host/scheduler_link.h"
#include "proxy/host/segment.h"
#include "proxy/host/server_exit.h"
#include "proxy/host/server_monitor.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

class ReplicaServer {
 public:
  class Owner : public ServerMonitor::Owner {
   public:
    // Successive bytes of one connection in one call.  `last`: after them the server has shut down
    // or closed the connection, which is the next call.
    virtual void handle_server_output(const OutputHeader& header, proxy::Pieces pieces,
                                      bool last) = 0;

   protected:
    ~Owner() = default;
  };

  // The references must outlive it.
  ReplicaServer(const Config& config, NodeMode& mode, Owner& owner);
  ReplicaServer(const ReplicaServer&) = delete;
  ReplicaServer& operator=(const ReplicaServer&) = delete;

  // Opens its segment and recordings.  On an error, sets `why` and returns the node's exit status.
  std::optional<ExitStatus> open(const StartingPoint& start, std::string& why);
  // After this call its processes can be started.
  void open_monitor(event_base* base);
  // Starts its processes by `begin` (Recovery::start_server).
  template <typename Begin>
  Outcome start(const Begin& begin) {
    mode_.before_server(layout());
    const ServerPlacement there(config_);
    return begin();
  }

  dmt::Layout& layout() noexcept { return segment_->layout(); }
  const dmt::Layout& layout() const noexcept { return segment_->layout(); }
  Segment& segment() noexcept { return *segment_; }
  SchedulerLink& scheduler_link() noexcept { return *scheduler_link_; }
  Outputs& outputs() noexcept { return *outputs_; }
  ServerMonitor& monitor() noexcept { return *monitor_; }
  ServerExit& exit() noexcept { return exit_; }
  const ServerExit& exit() const noexcept { return exit_; }
  bool opened() const noexcept { return outputs_ != nullptr; }
  // It runs or is starting.
  bool begun() const noexcept { return monitor_ != nullptr && monitor_->running(); }
  pid_t pid() const noexcept { return begun() ? monitor_->pid() : -1; }
  // The last entry that it has admitted.
  Index applied() const noexcept;

  // Trials of how the node runs beside it; call step_trials() at every turn of the event loop.
  const LoadTrials& trials() const noexcept { return trials_; }
  void step_trials(std::int64_t now_ns) { trials_.step(outputs_->writes(), now_ns); }

  void started() { files_.server_started(applied(), layout().scheduler.clock); }
  // Passes on all its output; returns the number of records.
  std::size_t drain();
  // Handles this record as if the server had written it.
  void handle_output(const OutputHeader& header, std::span<const std::byte> bytes);
  // The current point of the schedule, if no thread runs.  With it, the turns after the last
  // admission are compared, too.
  std::optional<proxy::SchedulePoint> rest_point();

  // Whether a call of the server that found no room on a disk still waits (ROOM-4).
  bool waits_for_room() const noexcept {
    return layout().scheduler.wait_for_room.load(std::memory_order_relaxed) != 0;
  }
  // The node does not sleep, so the server need not ring (ring_doorbell).
  void node_awake() noexcept { layout().scheduler.node_asleep.store(0, std::memory_order_relaxed); }
  // From now on the server takes no turn.
  void fence() noexcept {
    std::uint32_t not_yet = 0;
    layout().scheduler.fenced.compare_exchange_strong(not_yet, dmt::kFencedWrong);
  }
  // The machine refused a request of the server; its actions before that are right.
  bool was_refused() noexcept {
    return layout().scheduler.fenced.load(std::memory_order_relaxed) == dmt::kFencedRefused;
  }
  // Completes the recordings at the end; call before fence().  `whole`: the server ran all entries.
  void note_rest(bool whole);
  // Ends the remaining processes, and keeps its files and recordings.
  void stop(bool in_order, bool whole);

 private:
  // True: the bytes of all records so far are no longer needed.
  bool take(const OutputHeader& header, std::span<const std::byte> bytes);
  void hand_on(bool last = false);
  std::span<const std::byte> flip(const OutputHeader& header, std::span<const std::byte> bytes);

  const Config& config_;
  NodeMode& mode_;
  Owner& owner_;
  LastingFiles files_;
  LoadTrials trials_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<SchedulerLink> scheduler_link_;
  std::unique_ptr<Outputs> outputs_;
  std::unique_ptr<ServerMonitor> monitor_;
  ServerExit exit_;
  GatheredOutput gathered_;
  std::vector<std::byte> flipped_;  // Config::test_only_flip: the changed record
};

}  // namespace crane::node
