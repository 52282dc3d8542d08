// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node that runs a recorded history again, offline: where its entries come from, what its
// server's doings are compared with, and who looks on.
//
// The node is the one that serves in a group; it follows the history as it would follow a leader.
//
// Threads: one.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "consensus/consensus.h"
#include "proxy/node/stall_watch.h"
#include "proxy/record/history_follow.h"
#include "proxy/record/history_record.h"
#include "proxy/replay/replay_check.h"
#include "proxy/replay/replay_log.h"
#include "proxy/replay/replay_tool.h"

namespace crane::node {

class Replay {
 public:
  // All outlive it.
  struct Recorded {
    // One of these: a whole history, or one that is followed while it is written.
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

  // Also behind a difference: in valgrind addresses are others, and the inputs still are the same.
  void go_on() noexcept { goes_on_ = true; }

  // --- for the node
  std::unique_ptr<consensus::Consensus> open_log(const consensus::Options& options, Index behind,
                                                 std::function<bool()> room);
  // A leader that was alone told nobody which turns it had passed: all is known from the beginning.
  void foretell(StallWatch& stalls) const;
  proxy::ReplayCheck& check() noexcept { return check_; }
  const proxy::ReplayCheck& check() const noexcept { return check_; }
  bool traced() const noexcept { return recorded_.schedule.traced(); }

  // The server is held before its first operation, until the tool is there.
  bool holds() const noexcept { return tool_ != nullptr && !let_go_; }
  bool stops() const noexcept { return check_.difference().has_value() && !goes_on_; }
  bool runs() const noexcept { return !holds() && !stops(); }
  Outcome server_started(pid_t pid, std::string& why);
  // True once: the server may go on.
  bool lets_go();
  bool at_end() const noexcept { return log_ != nullptr && log_->at_end(); }
  // The last entry that the server is to admit, once at_end(); consensus' own do not count.
  Index last_for_server() const noexcept {
    return follows() && log_ != nullptr ? log_->last_for_server() : last_for_server_;
  }
  bool follows() const noexcept { return recorded_.follower != nullptr; }
  // The history is run to the end of what was recorded, which its replica reached in order.
  bool whole() const noexcept;

  // In a replay that follows: called now and then, with the last entry that was admitted.
  void on_progress(std::function<void(Index)> tell) { tell_ = std::move(tell); }
  void progress(std::int64_t now_ns, Index applied);

  // The comparison is done: the tool is told.  True when it does not look at the server any more.
  bool over();
  bool interactive() const { return tool_ != nullptr && tool_->interactive(); }
  void stop_tool();

  // --- for the report
  bool reached_end() const noexcept { return reached_end_; }
  void reach_end() noexcept { reached_end_ = true; }
  const std::string& failure() const noexcept { return failure_; }
  void fail(const std::string& why) { failure_ = why; }
  Index handed_out() const noexcept { return log_ == nullptr ? Index{0} : log_->handed_out(); }

 private:
  const Recorded recorded_;
  proxy::ReplayCheck check_;
  std::unique_ptr<ReplayTool> tool_;
  const Index to_;
  const ReplayLog* log_ = nullptr;  // the node's
  Index last_for_server_{};
  bool goes_on_ = false, started_ = false, let_go_ = false, over_ = false, reached_end_ = false;
  std::string failure_;
  std::function<void(Index)> tell_;
  std::int64_t told_ns_ = 0;
};

}  // namespace crane::node
