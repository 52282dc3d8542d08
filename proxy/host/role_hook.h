// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the operator's program when this replica's role changes ([hooks] role_change).
//
// The program gets CRANE_GROUP, CRANE_REPLICA, CRANE_ROLE (leader, follower, candidate, learner),
// CRANE_VIEW and CRANE_LEADER (empty: no leader is known) in its environment, and the node's
// standard streams.  Only one runs at a time.  If the role changes meanwhile, the program runs once
// more, with the newest state.  The loop never waits for it; its result is logged.
//
// Threads: the loop's.

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace crane::node {

class RoleHook {
 public:
  // `program`: absolute path; empty: there is no hook.
  RoleHook(event_base* base, std::string program);
  ~RoleHook();  // leaves a running program alone
  RoleHook(const RoleHook&) = delete;
  RoleHook& operator=(const RoleHook&) = delete;

  // `state`: words of the form "NAME=value".
  void changed(std::vector<std::string> state);
  bool running() const noexcept { return pidfd_ >= 0; }

 private:
  void start();
  void ended();

  event_base* base_;
  std::string program_;
  std::optional<std::vector<std::string>> next_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  event event_{};
};

}  // namespace crane::node
