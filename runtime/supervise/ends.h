// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meaning of a node's end: one row per exit status (runtime/setup/exit_status.h), and texts
// about it for people.
//
// Threads: plain functions.

#include <cstdint>
#include <string>

#include "runtime/setup/exit_status.h"
#include "runtime/setup/messages.h"
#include "runtime/supervise/restart_limiter.h"

namespace crane::supervise {

struct End {
  node::ExitStatus code{};
  setup::Status status = setup::Status::kNodeFailed;        // crane-run's status for it
  RestartLimiter::End kind = RestartLimiter::End::kKilled;  // determines the next start's delay
  std::int64_t least_ms = 0;                                // least delay of the next start
  // An agent, which has only one replica, starts it again, because the cause may go away.
  bool passes = false;
  // A start at an older checkpoint may fail in the same way, so crane-run requests a new one.
  bool asks_checkpoint = false;
  // The next start uses the kept state, even if starts from it failed before.
  bool hands_over = false;
  // All replicas end in this way and start again, even if the group has not served yet.
  bool begins_again = false;
  bool never_returns = false;  // every start would fail in the same way
};
// For 0 and codes without a row: the node was killed, or its end does not predict the next start.
End end_of(int code);

// How the server ended without a request, by the replicas' agreement.
enum class ExitReason : std::uint8_t {
  kExited,
  kSignal,
  kBackground  // its main process ended and left background processes, which Crane ends
};
ExitReason exit_reason_of(const std::string& name);  // "exited", "signal", "background"
// `status` in the form of a shell.
std::string server_end_text(ExitReason reason, int status);
// crane-run's exit status for it.
int server_end_status(ExitReason reason, int status);

// Replaces the result of wait(2) for a process that is not a child of this process.
inline constexpr int kUnseenEnd = -1;
// "killed by SIGKILL" or "ended with status ..."; `wait`: a result of wait(2), or kUnseenEnd.
std::string how_ended(int wait);
// "at once" or "in 4 s".
std::string when_text(std::int64_t in_ms);

}  // namespace crane::supervise
