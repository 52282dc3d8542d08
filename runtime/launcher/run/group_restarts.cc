// SPDX-License-Identifier: Apache-2.0
// How crane-run brings back the replicas that were lost (RETURN-1): as long as the group runs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/kept.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/run/group.h"
#include "runtime/setup/exit_status.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;
using node::ExitStatus;

// One checkpoint is asked for in so long, however many replicas run all inputs.
constexpr std::int64_t kAskAgainMs = 5'000;
// The evidence of a divergence is looked at before the replica is there again.
constexpr std::int64_t kDivergedMs = 1'000;
// How often a replica that found no room looks whether there is some.
constexpr std::int64_t kRoomMs = 2'000;
// A majority of the replicas that each failed by themselves so often in a row will go on to.
constexpr int kFailuresMost = 5;

constexpr int kHandedOver = node::code(ExitStatus::kHandedOver);

std::string name_of(int number) { return "replica " + std::to_string(number); }

// Statuses of nodes whose cause is likely to be there the next time,
// and on every replica: the server does not start or check in, the replica fenced itself, or is
// configured otherwise.
bool likely_again(int code) {
  const auto status = static_cast<ExitStatus>(code);
  return status == ExitStatus::kServerNotStarted || status == ExitStatus::kNeverCheckedIn ||
         status == ExitStatus::kFenced || status == ExitStatus::kDisagrees;
}

}  // namespace

// A single replica's end is the group's, unless another build of Crane goes on.  One that restarts
// at a checkpoint had a node that voted, also where the group has not served yet.
bool Group::returns(const Replica& replica) const {
  const bool together = options_.places() > 1 && voters() > 1;
  const bool helps = status_of(replica.problem) != Status::kUnhooked && (together || handed_over_);
  const bool begun =
      phase_ == Phase::kServing || status_of(replica.problem) == Status::kTooFarBehind;
  return phase_ != Phase::kStopping && begun && helps;
}

void Group::plan_return(Replica& replica) {
  const Status status = status_of(replica.problem);
  const bool full = status == Status::kDiskFull;
  const bool asked = full || status == Status::kTooFarBehind || replica.fatal_code == kHandedOver;
  const auto how = asked                              ? RestartLimiter::End::kAsked
                   : likely_again(replica.fatal_code) ? RestartLimiter::End::kFailed
                                                      : RestartLimiter::End::kKilled;
  replica.returns.ended(how, now_ms(),
                        full                                 ? kRoomMs
                        : status == Status::kReplicaDiverged ? kDivergedMs
                                                             : 0);
  // From an older one it may come to the same difference: if the server has read something of this
  // machine that is not there any more, only a checkpoint behind that helps.
  if (status == Status::kReplicaDiverged) ask_for_checkpoint();
  replica.told = replica.problem.error().text;
  const std::int64_t in_ms = replica.returns.due_ms() - now_ms();
  const std::string command = "crane-ctl replica resume " + std::to_string(replica.number);
  say(replica.told, setup::Level::kWarning);
  if (in_ms > 0) {
    say(name_of(replica.number) + " is started again " + when_text(in_ms) + ", after " +
        std::to_string(replica.returns.in_a_row()) + " ends in a row; " + command +
        " starts it at once");
  }
  write_notice(home_of(replica), {replica.told, replica.returns.in_a_row(), in_ms, command});
  write_state();
}

void Group::stops_returning(Replica& replica) {
  replica.returns.forget();
  remove_notice(home_of(replica));
}

bool Group::somebody_returns() const {
  return phase_ != Phase::kStopping &&
         std::any_of(replicas_.begin(), replicas_.end(),
                     [](const Replica& r) { return r.returns.planned(); });
}

// Until the next attempt; -1: none is planned.
int Group::return_timeout() const {
  std::int64_t least = -1;
  if (phase_ == Phase::kStopping) return -1;
  for (const Replica& replica : replicas_) {
    if (!replica.returns.planned()) continue;
    const std::int64_t left = std::max<std::int64_t>(0, replica.returns.due_ms() - now_ms());
    least = least < 0 ? left : std::min(least, left);
  }
  return static_cast<int>(least);
}

void Group::look_after_returns() {
  if (phase_ == Phase::kStopping) return;
  for (Replica& replica : replicas_) {
    if (replica.node < 0 && replica.returns.due(now_ms())) try_return(replica);
  }
}

void Group::try_return(Replica& replica) {
  if (analyses(replica)) return start_analysis(replica, " begins again");
  if (options_.on_disk()) return return_from_disk(replica);
  const bool there = has_checkpoint();
  if (!there) ask_for_checkpoint();
  Begin begin;
  begin.restores = begin.may_begin = true;
  // One that does not start from what is kept may start from the log; behind a hand-over it has
  // not tried yet.
  const int failed = replica.fatal_code == kHandedOver ? 0 : replica.returns.failed();
  begin.skips_checkpoints = failed > 1 && failed % 2 == 0;
  if (!start_again(replica, begin)) return plan_return(replica);
  say(name_of(replica.number) + (there && !begin.skips_checkpoints
                                     ? " recovers from a checkpoint"
                                     : " runs all inputs again" + why_no_checkpoint(there)));
}

// Its node finds its log, and the newest checkpoint, by itself.
void Group::return_from_disk(Replica& replica) {
  if (!start_again(replica, {})) return plan_return(replica);
  say(name_of(replica.number) + " recovers, from its log and the newest checkpoint");
}

std::string Group::why_no_checkpoint(bool there) const {
  if (there) return ", as it did not recover from a checkpoint";
  return ": there is no checkpoint" + (refused_.empty() ? "" : ", because " + refused_);
}

// The replica begins at once, as the log of a young group is soon run; if that takes longer than a
// restart, this checkpoint overtakes it (proxy/replica/recovery/overtaking.h).  The leader's node
// knows whether checkpoints are wanted, and can be taken.
void Group::ask_for_checkpoint() {
  if (leader() < 0 || alive() * 2 <= voters()) return;
  if (asked_ms_ != 0 && now_ms() - asked_ms_ < kAskAgainMs) return;
  asked_ms_ = now_ms();
  tell(replicas_[static_cast<std::size_t>(leader())], {{"t", "checkpoint"}});
}

// Its node looks whether it is whole.
bool Group::has_checkpoint() const {
  const std::string digest =
      checkpoint::digest_of_log(options_.name, number_of_log(record_.log_id));
  const auto kept = checkpoint::find_kept(directories_.dir()).checkpoints;
  return std::any_of(kept.begin(), kept.end(), [&digest](const checkpoint::Kept& one) {
    return one.listed.belongs_to(digest);
  });
}

// They were started again and again, and each time said why they cannot go on: as all have the same
// inputs, they will go on to.
bool Group::majority_fails() const {
  const auto failing = std::count_if(replicas_.begin(), replicas_.end(), [](const Replica& r) {
    return r.votes && r.returns.fails(kFailuresMost, now_ms());
  });
  return failing * 2 > voters();
}

// Another build of Crane goes on (HANDOVER-1): until a server of it listens, a build that does not
// start may be replaced, and nothing is lost meanwhile.
void Group::note_hand_over(const Replica& replica) {
  handed_over_ = handed_over_ || replica.fatal_code == kHandedOver;
}

}  // namespace crane::launcher
