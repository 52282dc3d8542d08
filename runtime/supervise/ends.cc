// SPDX-License-Identifier: Apache-2.0
#include "runtime/supervise/ends.h"

#include <sys/wait.h>

#include <cstring>

namespace crane::supervise {
namespace {

using node::ExitStatus;
using setup::Status;
using Kind = RestartLimiter::End;

// Time to look at the evidence of a divergence before the replica returns.
constexpr std::int64_t kDivergedMs = 1'000;
// Interval at which a replica that found no room tries again.
constexpr std::int64_t kRoomMs = 2'000;

// kFailed: the cause will probably be present at the next start, too, and on every replica.
constexpr End kEnds[] = {
    {.code = ExitStatus::kServerNotStarted, .kind = Kind::kFailed, .passes = true},
    {.code = ExitStatus::kNeverCheckedIn,
     .status = Status::kNeverCheckedIn,
     .kind = Kind::kFailed,
     .passes = true},
    {.code = ExitStatus::kServerDied, .status = Status::kReplicaStopped, .passes = true},
    {.code = ExitStatus::kFenced,
     .status = Status::kReplicaStopped,
     .kind = Kind::kFailed,
     .passes = true},
    {.code = ExitStatus::kLagging, .status = Status::kReplicaStopped, .passes = true},
    {.code = ExitStatus::kDisagrees, .status = Status::kReplicaStopped, .kind = Kind::kFailed},
    {.code = ExitStatus::kNoListener, .status = Status::kPortTaken},
    {.code = ExitStatus::kUnhooked, .status = Status::kUnhooked, .never_returns = true},
    {.code = ExitStatus::kDiverged,
     .status = Status::kReplicaDiverged,
     .least_ms = kDivergedMs,
     .passes = true,
     .asks_checkpoint = true},
    {.code = ExitStatus::kTooFarBehind,
     .status = Status::kTooFarBehind,
     .kind = Kind::kAsked,
     .passes = true},
    {.code = ExitStatus::kHandedOver,
     .status = Status::kReplicaStopped,
     .kind = Kind::kAsked,
     .passes = true,
     .hands_over = true},
    {.code = ExitStatus::kBeginsAgain,
     .status = Status::kReplicaStopped,
     .kind = Kind::kAsked,
     .passes = true,
     .begins_again = true},
    {.code = ExitStatus::kNoRoom,
     .status = Status::kDiskFull,
     .kind = Kind::kAsked,
     .least_ms = kRoomMs,
     .passes = true},
};

}  // namespace

End end_of(int code) {
  for (const End& end : kEnds) {
    if (node::code(end.code) == code) return end;
  }
  const bool stopped = code >= node::code(ExitStatus::kServerDied);
  return {.code = static_cast<ExitStatus>(code),
          .status = stopped ? Status::kReplicaStopped : Status::kNodeFailed};
}

std::string how_ended(int wait) {
  if (wait == kUnseenEnd) return "it ended; only the crane-run that started it could see how";
  if (WIFSIGNALED(wait)) {
    const char* name = sigabbrev_np(WTERMSIG(wait));
    return "killed by SIG" + (name != nullptr ? name : std::to_string(WTERMSIG(wait)));
  }
  return "ended with status " + std::to_string(WEXITSTATUS(wait));
}

ExitReason exit_reason_of(const std::string& name) {
  return name == "signal"       ? ExitReason::kSignal
         : name == "background" ? ExitReason::kBackground
                                : ExitReason::kExited;
}

std::string server_end_text(ExitReason reason, int status) {
  const std::string number = std::to_string(status);
  if (reason == ExitReason::kSignal) {
    return "the server crashed at the same place on all replicas: " + how_ended(status - 128) +
           " (status " + number + ")";
  }
  if (reason == ExitReason::kBackground) {
    return "the server went to the background, where nothing serves its clients: run it in the "
           "foreground, as under a service manager (without -d or --daemon, with -D, -F or "
           "\"daemon off;\")";
  }
  return "the server ended with status " + number;
}

int server_end_status(ExitReason reason, int status) {
  return reason == ExitReason::kBackground ? static_cast<int>(setup::Status::kInBackground)
                                           : status;
}

std::string when_text(std::int64_t in_ms) {
  if (in_ms < 500) return "at once";
  return "in " + std::to_string((in_ms + 999) / 1000) + " s";
}

}  // namespace crane::supervise
