// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node that runs a recorded history again, offline.  This mode supplies the entries, compares the
// server's actions with the recording, and runs the tool that observes the server.
//
// The node is the same as in a group; it follows the history as it would follow a leader.
//
// Threads: one.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "consensus/consensus.h"
#include "proxy/host/mode.h"
#include "proxy/host/stall_watch.h"
#include "proxy/record/history_follow.h"
#include "proxy/record/history_record.h"
#include "proxy/replay/replay_check.h"
#include "proxy/replay/replay_log.h"
#include "proxy/replay/replay_tool.h"

namespace crane::node {

class Replay : public NodeMode, private ReplayLog::Gate {
 public:
  // All members must outlive it.
  struct Recorded {
    // Exactly one is set: a whole history, or one that is followed while it is written.
    const proxy::History* history;
    proxy::HistoryFollower* follower;
    const proxy::Recording& outputs;
    const proxy::RecordedSchedule& schedule;
  };
  // `to`: the last entry that the server gets.
  Replay(const Recorded& recorded, Index to, std::unique_ptr<ReplayTool> tool)
      : recorded_(recorded),
        check_(recorded.outputs, recorded.schedule),
        tool_(std::move(tool)),
        to_(to) {}

  // Continues after a difference: under valgrind addresses differ, but the inputs are the same.
  void go_on() noexcept { continues_ = true; }

  // `callback` is called at intervals with the last admitted entry.
  void on_progress(std::function<void(Index)> callback) { on_progress_ = std::move(callback); }

  bool opens() const override;

  // --- NodeMode
  bool member() const noexcept override { return false; }
  Result<std::unique_ptr<consensus::Consensus>> open_log(consensus::Options options, Index behind,
                                                         const LogReader& reader) override;
  // A leader without other replicas logs no passed turns, so all stalls are read from the history.
  bool knows_all_stalls(StallWatch& stalls, unsigned replicas) override;
  std::vector<EarlyPoint> early_points(const Config& config) const override;
  void begin_behind(Index at, const std::vector<proxy::OutputStream>& open) override;
  void before_server(dmt::Layout& layout) override;
  Outcome server_started(pid_t pid, std::string& reason) override;
  void connected(ConnId conn, const ConnectBody& body) override { check_.connected(conn, body); }
  void output(const dmt::Layout& layout, const OutputHeader& header,
              std::span<const std::byte> bytes) override;
  void digest(ReplicaId self, const proxy::Digest& own, const proxy::Digests& logged) override;
  // Not before the tool is ready, and not after a difference.
  bool watches_stalls() const noexcept override { return !holds() && !stops(); }
  bool step(std::int64_t now_ns, dmt::Layout& layout, const ServerProgress& server) override;
  bool takes_interrupt() const override { return tool_ != nullptr && tool_->interactive(); }
  void failed(const std::string& reason) override { failure_ = reason; }
  void stop() override;

  // --- for the report
  const proxy::ReplayCheck& check() const noexcept { return check_; }
  bool traced() const noexcept { return recorded_.schedule.traced(); }
  bool reached_end() const noexcept { return reached_end_; }
  const std::string& failure() const noexcept { return failure_; }
  Index handed_out() const noexcept { return log_ == nullptr ? Index{0} : log_->handed_out(); }

 private:
  // The server is held before its first operation until the tool is ready.
  bool holds() const noexcept { return tool_ != nullptr && !released_; }
  bool stops() const noexcept { return check_.difference().has_value() && !continues_; }
  bool follows() const noexcept { return recorded_.follower != nullptr; }
  // The replay runs to the end of the recording, which its replica reached in order.
  bool whole() const noexcept;
  // True once, when the server may start its operations.
  bool releases_server_();
  void report_progress(std::int64_t now_ns, Index applied);
  // The last entry that the server must admit, at the log's end; entries of consensus do not count.
  Index last_for_server() const noexcept {
    return follows() && log_ != nullptr ? log_->last_for_server() : last_for_server_;
  }
  bool at_rest(const dmt::Layout& layout, const ServerProgress& server) const;
  void compare_turns(const dmt::Layout& layout);
  // The comparison is done: notifies the tool.  True: the tool no longer observes the server.
  bool over();

  const Recorded recorded_;
  proxy::ReplayCheck check_;
  std::unique_ptr<ReplayTool> tool_;
  const Index to_;
  const ReplayLog* log_ = nullptr;  // owned by the node
  const LogReader* reader_ = nullptr;
  Index last_for_server_{};
  bool continues_ = false, started_ = false, released_ = false, over_ = false, reached_end_ = false;
  std::string failure_;
  std::function<void(Index)> on_progress_;
  std::int64_t reported_ns_ = 0;
};

}  // namespace crane::node
