// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a node ends.  When requested to stop, it waits until the committed entries were carried out,
// so that replicas that stop together have equal outputs.  A failure ends it at once.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT STOP-1  The node's exit status is that of the first failure.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "dmt/base/ids.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

class Shutdown {
 public:
  // Takes no more input, and leaves when nothing happens for a while, or at the deadline.
  // `server_ended`: there is nothing to wait for.
  void request(std::int64_t now_ns, bool server_ended) noexcept {
    if (stopping_) return;
    stopping_ = true;
    active_ns_ = now_ns;
    leave_at_ns_ = std::min(leave_at_ns_, now_ns + (server_ended ? 0 : kStopNs));
  }
  // Leaves at `at_ns`, so that others learn what this node knows.
  void linger_until(std::int64_t at_ns) noexcept { leave_at_ns_ = at_ns; }
  void leave_now() noexcept { done_ = true; }
  // The replica was removed from the group by an operator; a failure follows.
  void leave_group() noexcept { removed_ = true; }
  bool removed() const noexcept { return removed_; }
  // False: the node has ended already (STOP-1).
  bool fail(ExitStatus status) noexcept {
    if (done_) return false;
    done_ = true;
    result_ = status;
    return true;
  }
  // Cancels the end, for clients that are still forwarded.
  void resume() noexcept { done_ = stopping_ = false; }

  // The server has written output, or has admitted up to `applied`.
  void observe(bool output, Index applied, std::int64_t now_ns) noexcept {
    if (!output && applied == active_applied_) return;
    active_ns_ = now_ns;
    active_applied_ = applied;
  }
  void step(std::int64_t now_ns) noexcept {
    if (stopping_ && now_ns - active_ns_ >= kSettleNs) done_ = true;
    if (now_ns >= leave_at_ns_) done_ = true;
  }
  // The latest time of the next step().
  std::int64_t due_ns(std::int64_t now_ns) const noexcept {
    return stopping_ ? std::min(leave_at_ns_, now_ns + kSettleNs / 4) : leave_at_ns_;
  }

  bool stopping() const noexcept { return stopping_; }
  bool done() const noexcept { return done_; }
  ExitStatus result() const noexcept { return result_; }
  bool in_order() const noexcept { return result_ == ExitStatus::kStopped; }

  // A stop waits until nothing has happened for kSettleNs, at most for kStopNs.
  static constexpr std::int64_t kSettleNs = 80'000'000;
  static constexpr std::int64_t kStopNs = 1'500'000'000;

 private:
  bool stopping_ = false;
  bool done_ = false;
  bool removed_ = false;
  ExitStatus result_ = ExitStatus::kStopped;
  std::int64_t leave_at_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t active_ns_ = 0;  // time of the server's last visible action
  Index active_applied_{};
};

}  // namespace crane::node
