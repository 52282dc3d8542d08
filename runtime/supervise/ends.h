// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the end of a node means: one row per exit status (runtime/setup/exit_status.h), and how
// people read it.
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
  setup::Status status = setup::Status::kNodeFailed;        // as crane-run says it
  RestartLimiter::End kind = RestartLimiter::End::kKilled;  // how long its next start waits
  std::int64_t least_ms = 0;
  // An agent, which has one replica alone, starts it again: the cause can pass by itself.
  bool passes = false;
  // A start at an older checkpoint may come to the same end, so a new one is asked for.
  bool asks_checkpoint = false;
  // The next start goes by what was kept, whatever failed before.
  bool hands_over = false;
  // All replicas end so, and go on from there; also where the group has not served yet.
  bool begins_again = false;
  bool never_returns = false;  // every start would come to the same end
};
// 0 and codes without a row: killed, or ended in a way that says nothing of the next time.
End end_of(int code);

// How a server ended by itself, as the replicas agree; `status` as a shell shows it.
enum class ExitReason : std::uint8_t {
  kExited,
  kSignal,
  kBackground  // it left its work to processes in the background, which end with it
};
ExitReason exit_reason_of(const std::string& name);  // "exited", "signal", "background"
std::string server_end_text(ExitReason reason, int status);
// The status that crane-run ends with.
int server_end_status(ExitReason reason, int status);

// In the place of what wait(2) gives, of a process that is no child of ours.
inline constexpr int kUnseenEnd = -1;
// "killed by SIGKILL" or "ended with status ...", of what wait(2) gives.
std::string how_ended(int wait);
// "at once" or "in 4 s".
std::string when_text(std::int64_t in_ms);

}  // namespace crane::supervise
