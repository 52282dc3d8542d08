// SPDX-License-Identifier: Apache-2.0
#pragma once
// Removed rules, for the tests which prove that simulated groups notice each removal
// (proxy/sim/replicas; the table is in proxy/replica/README.md).

#include <cstdint>

namespace crane::replica {

enum class Mutant : std::uint8_t {
  kNone,
  kHoldForever,      // TAKE-1: a dump that is given up keeps the log
  kDumpEarly,        // TAKE-2: the server is dumped before it has reached the place
  kRestartAnywhere,  // LACK-1: a replica restarts at any checkpoint
  kRetryUnusable,    // LACK-2: a replica restarts at one that could not be unpacked
  kLackingServes,    // ASK-1: a replica that lacks entries counts as able to take checkpoints
  kAskAbsent,        // ASK-2: an absent replica is asked for a checkpoint
  kForgetWaiting,    // the leader requests no checkpoint for replicas that wait for one
  kNeverLook,        // VOTES-1: a replica without a server looks for no checkpoint
  kRestartAtOnce,    // VOTES-1: a replica without a server restarts whatever the others do
  kNeverVoteOnly,    // VOTES-1: a replica whose log begins too late ends
  kNeverFull,        // KEEP-1: inputs do not wait for a checkpoint
  kKeepOldPlace,     // KEEP-1: a newer checkpoint makes no room
  kForgetFailure,    // SCHEDULE-1: no other checkpoint follows one that failed
  kCaughtUpAtOnce,   // CATCHUP-1: a replica has caught up as soon as it begins
  kOvertakeAlways,   // OVERTAKE-1: every newer checkpoint is worth a restart
  kKeepLead,         // LAG-1: a leader whose server lags keeps leading
  kGoalMoves,        // CATCHUP-1: what is committed meanwhile must be run as well
  kStoreIsReady,     // CATCHUP-1: a replica that runs its store's log again has caught up
  kReportReady,      // VERDICT-2: a recovering replica reports that it could lead and serve
  kTrustAll,         // START-3: a checkpoint after which replicas differed is as good as another
  kKeepRefusal,      // TIER-1: another replica's dump does not end a refusal
  kLeaveFull,        // a node that finds no room on its disk leaves its group
  kSurviveCrash,     // a server that an input crashed counts as killed
  kNoRollback,       // UPGRADE-2: a server that does not listen in time stays
  kServeEarly,       // LEAD-2: a leader takes clients before its server has run its START
  kForgetClients,    // a replica that begins at a checkpoint knows none of its connections
};
inline constexpr int kMutants = static_cast<int>(Mutant::kForgetClients) + 1;

}  // namespace crane::replica
