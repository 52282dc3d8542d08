// SPDX-License-Identifier: Apache-2.0
#include "runtime/supervise/supervisor.h"

#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "dmt/base/oom_kills.h"

namespace crane::supervise {
namespace {

using node::ExitStatus;
using setup::failure;
using setup::Level;
using setup::Status;
using setup::status_of;

// Least interval between requests for a checkpoint, however many replicas run all inputs.
constexpr std::int64_t kAskAgainMs = 5'000;
// If a majority of the replicas failed this often in a row, they will fail again.
constexpr int kFailuresMost = 5;
constexpr std::int64_t kExitTimeoutMs = 10'000;  // for the other servers after one ended

std::string name_of(int number) { return "replica " + std::to_string(number); }

std::string command_for(int number) { return "crane-ctl replica resume " + std::to_string(number); }

}  // namespace

Supervisor::Supervisor(Settings settings)
    : settings_(std::move(settings)), place_(settings_.analysis >= 0) {
  for (int i = 0; i < settings_.places; ++i) {
    Replica& r = replicas_.emplace_back();
    r.number = settings_.first + i;
    r.member = r.votes = i < settings_.members;
    r.returns = RestartLimiter(settings_.return_unit_ms);
  }
}

std::vector<Action> Supervisor::step(const Event& event, std::int64_t now_ms) {
  now_ms_ = now_ms;
  actions_.clear();
  std::visit(
      [this](const auto& e) {
        if constexpr (requires { e.replica; }) {
          if (e.replica < settings_.first || e.replica >= settings_.first + settings_.places)
            return;
        }
        on(e);
      },
      event);
  return std::exchange(actions_, {});
}

std::int64_t Supervisor::deadline_ms() const {
  std::int64_t least = stop_deadline_ms_;
  if (stopping()) return least;
  for (const Replica& r : replicas_) {
    if (r.returns.planned() && !r.has_node() && !r.looks)
      least = std::min(least, r.returns.due_ms());
  }
  return analysis_differs() ? std::min(least, place_.due_ms()) : least;
}

bool Supervisor::over() const {
  return left_ ||
         (!settings_.host && std::none_of(replicas_.begin(), replicas_.end(), [&](auto& r) {
           return r.has_node() || (r.returns.planned() && !stopping());
         }));
}

void Supervisor::print_message(std::string text, Level level) {
  act(PrintMessage{std::move(text), level});
}

// --- nodes start --------------------------------------------------------------------------------

// The seed of a perturbed group determines the order of its starts.
void Supervisor::on(const Start&) {
  const auto count = static_cast<std::size_t>(settings_.members);
  for (std::size_t i = 0; i < count && !stopping(); ++i) {
    Replica& r = replicas_[(settings_.perturb + i) % count];
    if (!r.has_node()) start(r, {});
  }
}

// Prints `announcement` after the node has started.
void Supervisor::start(Replica& r, Plan plan, std::string announcement) {
  r.forgets = plan.forgets = plan.forgets || r.forgets;  // SUP-4
  r.plan = plan;
  r.next.reset();
  r.announcement = std::move(announcement);
  r.runs = true;
  r.problem = Done{};
  r.code = 0;
  r.ready = r.drained = r.removed = r.acceptor_only = r.exited = false;
  r.returns.begins(now_ms_);
  act(StartNode{r.number, std::move(plan)});
  act(RemoveNotice{r.number});
}

void Supervisor::on(const Started& e) {
  Replica& r = at(e.replica);
  if (!r.announcement.empty()) print_message(r.announcement);
  if (stopping() && r.runs) act(EndNode{r.number, signal_});
  if (!std::exchange(answers_, false)) return;
  act(BroughtBack{});
  answer("", name_of(r.number) + " is started");
}

// The machine lacks something, but perhaps only for a short time.
void Supervisor::on(const NotStarted& e) {
  Replica& r = at(e.replica);
  r.runs = false;
  if (std::exchange(answers_, false)) answer("failed", "its node cannot be started");
  if (stopping()) return leave(r);
  if (analyses(r)) return release_analysis(r, e.why.text);
  if (r.resumes) return stay_drained(r, e.why.text);
  if (r.plan.from == Plan::From::kBeginning) {
    return settings_.host ? give_up(e.why) : end_with(e.why);
  }
  r.problem = e.why;
  r.code = status_of(r.problem) == Status::kDiskFull ? node::code(ExitStatus::kNoRoom) : 0;
  if (!r.plan.checkpoint.empty()) r.next = r.plan;
  plan_return(r);
  r.problem = Done{};
}

void Supervisor::on(const Found& e) {
  Replica& r = at(e.replica);
  r.member = e.member;
  r.votes = e.votes;
  r.drained = e.drained && e.node == Found::Node::kNone;
  r.silent = e.node == Found::Node::kSilent;
  r.runs = e.node == Found::Node::kAnswers;
  if (r.runs) act(RemoveNotice{r.number});
}

void Supervisor::on(const TakeOver& e) {
  phase_ = Phase::kServing;
  served_ = true;
  if (e.ends) return stop("told to stop");
  const bool any =
      std::any_of(replicas_.begin(), replicas_.end(), [](auto& r) { return r.silent; });
  const std::string what =
      running() > 0 ? "taking over group " + settings_.group +
                          ", which had no crane-run: " + std::to_string(running()) + " nodes run"
      : any ? "taking over group " + settings_.group + ": none of its nodes answers yet"
            : "continuing group " + settings_.group + ": none of its nodes runs";
  print_message(what + "; its state is in " + settings_.dir + " and " + settings_.shm_dir);
  for (Replica& r : replicas_) {
    if (r.has_node() || r.drained || !r.member || analyses(r)) continue;
    r.problem = failure(Status::kNodeFailed, name_of(r.number), "its node is lost",
                        "it ended while no crane-run supervised it", log_of(r));
    plan_return(r);
    r.problem = Done{};
  }
}

void Supervisor::on(const Adopted& e) {
  Replica& r = at(e.replica);
  if (!r.silent) return;
  r.silent = false;
  r.runs = true;
  act(RemoveNotice{r.number});
  if (stopping()) act(EndNode{r.number, signal_});
}

// --- nodes report -------------------------------------------------------------------------------

void Supervisor::on(const Reported& e) {
  Replica& r = at(e.replica);
  switch (e.report) {
    case Report::kReady: {
      r.ready = true;
      const bool all = std::all_of(replicas_.begin(), replicas_.end(), [this](const Replica& one) {
        return one.ready || !one.member || analyses(one);
      });
      if (!all || phase_ != Phase::kStarting || settings_.host) return;
      phase_ = Phase::kServing;
      served_ = true;
      return print_message("all replicas run");
    }
    case Report::kListens:
      handed_over_ = false;
      return;
    case Report::kCaughtUp:
      r.ended_alone = false;
      return;
    case Report::kServes:
      r.served = true;
      r.resumes = r.forgets = false;
      return;
    case Report::kRemoved:
      r.removed = true;
      return;
    case Report::kDrained:
      r.drained = true;
      return;
    case Report::kAcceptorOnly:
      r.acceptor_only = true;
      return print_message(
          name_of(r.number) +
              " votes, but has no server until there is a new checkpoint: its log begins "
              "after the newest one",
          Level::kWarning);
  }
}

void Supervisor::on(const Role& e) {
  Replica& r = at(e.replica);
  const bool led = std::exchange(r.leads, e.leads && r.runs);
  r.view = e.view;
  r.forgets = false;  // the node has opened the log's memory
  if (r.leads) {
    for (Replica& other : replicas_) {
      if (other.number != r.number && other.view < e.view) other.leads = false;
    }
    print_message(name_of(r.number) + " leads (view " + std::to_string(e.view) + ")");
    checkpoint_request_ms_.reset();  // an earlier leader may have been lost with the request
    if (wants_checkpoint_) ask_for_checkpoint();
    signal_servers();
  } else if (led) {
    act(Detail{name_of(r.number) + " no longer leads"});
  }
}

// The server of one replica ended.  The others end at the same point of the history.
void Supervisor::on(const ServerExit& e) {
  Replica& r = at(e.replica);
  r.exited = true;
  r.exit_status = e.status;
  r.exit_reason = e.reason;
  r.refused = e.refused;
  decide_after_exits(r);
}

void Supervisor::decide_after_exits(const Replica& last) {
  const int status = last.exit_status;
  const std::string number = std::to_string(status);
  const bool as_requested = ending_ && (status < 128 || status == 128 + settings_.stop_signal);
  status_ = as_requested ? 0 : status;
  act(Detail{name_of(last.number) + ": its server ended with status " + number});
  for (const Replica& other : replicas_) {
    if (!other.exited || other.exit_status == status) continue;
    print_message("the servers ended differently: replica " + std::to_string(other.number) +
                  " with " + std::to_string(other.exit_status) + ", replica " +
                  std::to_string(last.number) + " with " + number);
  }
  const bool all = std::all_of(replicas_.begin(), replicas_.end(), [this](const Replica& r) {
    return r.exited || !r.runs || r.acceptor_only || analyses(r);
  });
  if (!all) {
    if (stop_deadline_ms_ == kNever) stop_deadline_ms_ = now_ms_ + kExitTimeoutMs;
    return;
  }
  // An operator who requested the end needs no pointer to the logs.
  const bool requested = as_requested || stopping();
  const ExitReason reason = requested ? ExitReason::kExited : last.exit_reason;
  if (!requested) status_ = server_end_status(reason, status);
  const bool failed = !requested && status_ != 0;
  if (failed) act(KeepLogs{});
  if (failed && !last.refused.empty()) print_message(last.refused, Level::kError);
  print_message(
      server_end_text(reason, status) +
          (failed ? "; its log: " + home_of(last) + "/server.log, with the node's log beside it"
                  : std::string()),
      failed ? Level::kError : Level::kInfo);
  stop(nullptr);
}

// SUP-5: the server did not end because of its inputs, but for a cause of this replica.
void Supervisor::take_back_exit(Replica& r) {
  r.exited = false;
  const bool any =
      std::any_of(replicas_.begin(), replicas_.end(), [](auto& o) { return o.exited; });
  if (any) return;
  status_ = 0;
  if (!ending_) stop_deadline_ms_ = kNever;
}

// At least as many servers go on as have ended, and no earlier end may have had the same cause.
bool Supervisor::others_go_on() const {
  std::ptrdiff_t more = 0;
  for (const Replica& r : replicas_) {
    if (r.ended_alone && r.member) return false;
    if (r.votes && r.exited) --more;
    if (r.votes && !r.exited && r.runs && !r.acceptor_only) ++more;
  }
  return more >= 0;
}

void Supervisor::return_exited() {
  for (Replica& r : replicas_) {
    if (!r.exited) continue;
    r.code = node::code(ExitStatus::kServerDied);
    r.problem = failure(Status::kReplicaStopped, name_of(r.number), "stopped",
                        "its server ended with status " + std::to_string(r.exit_status) +
                            ", and the servers of the others did not",
                        log_of(r));
    take_back_exit(r);
    r.ended_alone = true;
    r.has_node() ? act(EndNode{r.number, SIGTERM}) : lose(r);
  }
}

void Supervisor::on(const Fatal& e) {
  Replica& r = at(e.replica);
  const End end = end_of(e.code);
  r.code = e.code;
  r.problem =
      failure(end.status, name_of(r.number), "stopped", e.message,
              end.never_returns ? "without --strict such calls are only counted" : log_of(r));
}

// A replica that was added gets a node.  Its place may have belonged to another replica before.
void Supervisor::on(const Members& e) {
  if (stopping() || !at(e.replica).leads) return;
  for (Replica& r : replicas_) {
    const auto found = std::find_if(e.list.begin(), e.list.end(),
                                    [&r](const Member& m) { return m.replica == r.number; });
    const bool is_member = found != e.list.end();
    const bool votes = is_member && found->votes;
    if (votes && !r.votes) print_message(name_of(r.number) + " votes from now on");
    r.votes = votes;
    if (!is_member && r.returns.planned()) {
      r.returns.forget();
      act(RemoveNotice{r.number});
    }
    const bool was_member = std::exchange(r.member, is_member);
    if (analyses(r)) {
      if (!place_.listed(is_member, r.has_node())) continue;
      r.returns.forget();
      start(r, {},
            "analysis " + name_of(r.number) + " runs the server in " + settings_.tool +
                ", beside the group");
    } else if (is_member && !was_member && !r.has_node()) {
      start(r, {.from = Plan::From::kCheckpoint, .forgets = true},
            name_of(r.number) + " was added to the group and starts");
    }
  }
}

void Supervisor::on(const Refused& e) { refused_ = e.why; }

// --- nodes end ----------------------------------------------------------------------------------

void Supervisor::on(const NodeEnded& e) {
  Replica& r = at(e.replica);
  if (!r.has_node()) return;
  r.runs = r.silent = r.leads = false;
  r.wait = e.wait;
  r.drained = r.drained || e.drained;
  if (stopping()) return leave(r);
  if (r.exited && r.problem.ok()) return decide_after_exits(r);
  if (r.exited) take_back_exit(r);
  if (ended_on_request(r)) return;
  if (settings_.host) {
    r.code = WIFEXITED(e.wait) ? WEXITSTATUS(e.wait) : node::code(ExitStatus::kServerDied);
  }
  if (analyses(r) && !r.problem.ok() && !end_of(r.code).begins_again)
    return release_analysis(r, r.problem.error().text);
  if (r.problem.ok()) r.problem = why_lost(r, e);
  if (analyses(r)) return plan_return(r);
  lose(r);
}

// The replica has no node any more; `code` and `problem` say why.
void Supervisor::lose(Replica& r) {
  const End end = end_of(r.code);
  handed_over_ = handed_over_ || end.hands_over;
  act(KeepLogs{});
  const bool returns_now = returns(r, end);
  if (returns_now) plan_return(r);
  if (!settings_.host) return decide_after_loss(r);
  if (returns_now) return;
  r.resumes ? stay_drained(r, r.problem.error().text) : leave(r);
}

Error Supervisor::why_lost(const Replica& r, const NodeEnded& e) const {
  const bool killed = WIFSIGNALED(e.wait) && WTERMSIG(e.wait) == SIGKILL;
  const std::string how = how_ended(e.wait) + (killed ? oom_text(e.oom_kills) : "");
  if (settings_.host) {
    return failure(Status::kNodeFailed,
                   "its node " + how + (e.last_line.empty() ? "" : ": " + e.last_line));
  }
  return analyses(r)
             ? failure(Status::kNodeFailed, "analysis " + name_of(r.number), "its processes ended",
                       how, log_of(r))
             : failure(Status::kNodeFailed, name_of(r.number), "its node is lost", how, log_of(r));
}

// Returns true if the node ended on request, so that its replica is not lost.
bool Supervisor::ended_on_request(Replica& r) {
  if (!r.removed && !r.drained) return false;
  r.problem = Done{};
  r.ready = false;
  r.returns.forget();
  if (settings_.host) {
    stay_drained(r, "");
  } else if (r.removed) {
    r.member = r.votes = false;
    print_message(name_of(r.number) + " has left the group");
  } else {
    print_message(name_of(r.number) + " is drained; " + command_for(r.number) + " brings it back");
    if (r.next) bring_back(r, Plan(*r.next));
  }
  return true;
}

// AGENT-4.  `why`: why resuming it failed.
void Supervisor::stay_drained(Replica& r, std::string why) {
  r.drained = true;
  r.resumes = false;
  r.resume_failure = why;
  act(StaysDrained{std::move(why)});
}

// Decides, after a replica of the group was lost, whether the group ends.
void Supervisor::decide_after_loss(Replica& lost) {
  const int total = voters();
  const Error last = std::exchange(lost.problem, Done{}).error();
  const auto status = static_cast<Status>(last.exit_status);
  const std::string left = std::to_string(alive()) + " of " + std::to_string(total) + " replicas";
  if (!lost.returns.planned() || (majority_fails() && !handed_over_)) {
    // In strict mode the servers of all replicas make the same calls.
    const bool program = status == Status::kNeverCheckedIn || phase_ == Phase::kStarting ||
                         total == 1 || status == Status::kUnhooked;
    if (program) return end_with(last);  // one replica: a starved machine; all: the program
    return end_with(failure(Status::kMajorityLost, "the group cannot continue", settings_.group,
                            left + " are left, fewer than a majority, and the replicas that were "
                                   "started again failed again",
                            "the last one's log: " + home_of(lost) + "/node.log"));
  }
  if (!lost.votes) return;
  print_message(alive() * 2 > total
                    ? "the group continues with " + left
                    : "the group waits: " + left + " are left, fewer than a majority",
                Level::kWarning);
}

// Whether a majority was restarted several times and reported each time why it cannot continue.
// All replicas have the same inputs, so they will fail again.
bool Supervisor::majority_fails() const {
  const auto failing = std::count_if(replicas_.begin(), replicas_.end(), [this](const Replica& r) {
    return r.votes && r.returns.fails(kFailuresMost, now_ms_);
  });
  return failing * 2 > voters();
}

// The group loses nothing with the analysis replica.
void Supervisor::release_analysis(Replica& r, const std::string& why) {
  place_.release();
  act(AnalysisReleased{r.number, why});
  r.problem = Done{};
  r.returns.forget();
  act(KeepLogs{});
}

// --- nodes return -------------------------------------------------------------------------------

// The end of a single replica ends the group, unless another build of Crane takes over.  A replica
// that restarts at a checkpoint had a node that voted, even if the group has not served yet.
bool Supervisor::returns(const Replica& r, const End& end) const {
  if (end.begins_again) return true;
  if (settings_.host) return end.passes && r.served;
  const bool together = settings_.places > 1 && voters() > 1;
  const bool begun = phase_ == Phase::kServing || end.status == Status::kTooFarBehind;
  return begun && !end.never_returns && (together || handed_over_);
}

void Supervisor::plan_return(Replica& r) {
  const End end = end_of(r.code);
  r.returns.ended(end.kind, now_ms_, end.least_ms);
  // If the server has read something from this machine that is no longer there, only a later
  // checkpoint helps.
  if (end.asks_checkpoint) ask_for_checkpoint();
  const std::string why = r.problem.error().text, command = command_for(r.number);
  const std::int64_t in_ms = r.returns.due_ms() - now_ms_;
  const std::string when = in_ms > 0 ? when_text(in_ms) : "";
  if (settings_.host) {
    print_message(
        why + "; it recovers" +
        (when.empty() ? "" : ", " + when + "; " + command + " on this host starts it at once"));
  } else {
    print_message(why, Level::kWarning);
    if (!when.empty()) {
      print_message(name_of(r.number) + " is started again " + when + ", after " +
                    std::to_string(r.returns.in_a_row()) + " ends in a row; " + command +
                    " starts it at once");
    }
  }
  act(WriteNotice{r.number, why, r.returns.in_a_row(), in_ms, command});
}

void Supervisor::try_return(Replica& r) {
  using From = Plan::From;
  if (analyses(r)) return start(r, {}, "analysis " + name_of(r.number) + " begins again");
  if (r.next) return bring_back(r, Plan(*r.next));
  if (settings_.host) return start(r, {.from = From::kStore});
  if (settings_.on_disk && !r.forgets) {
    return start(r, {.from = From::kStore},
                 name_of(r.number) + " recovers, from its log and the newest checkpoint");
  }
  r.looks = true;
  act(LookForCheckpoint{r.number});
}

// The replica begins at once, because running the log of a young group takes little time.  If it
// takes longer than a restart, the requested checkpoint overtakes it
// (proxy/replica/recovery/overtaking.h).
void Supervisor::on(const CheckpointLookup& e) {
  Replica& r = at(e.replica);
  if (!std::exchange(r.looks, false)) return;
  if (stopping() || r.has_node() || !r.returns.due(now_ms_)) return;
  if (!e.found) ask_for_checkpoint();
  // A replica that fails to start from the kept state may start from the log.  After a hand-over it
  // has not tried the kept state yet.
  const int failed = end_of(r.code).hands_over ? 0 : r.returns.failed();
  const bool skips = failed > 1 && failed % 2 == 0;
  const std::string why =
      e.found ? ", as it did not recover from a checkpoint"
              : ": there is no checkpoint" + (refused_.empty() ? "" : ", because " + refused_);
  start(r, {.from = skips ? Plan::From::kLog : Plan::From::kCheckpoint},
        name_of(r.number) +
            (e.found && !skips ? " recovers from a checkpoint" : " runs all inputs again" + why));
}

// The leader's node knows whether checkpoints are wanted, and can be taken.  Without a leader the
// next one gets the request.
void Supervisor::ask_for_checkpoint() {
  wants_checkpoint_ = leader() < 0;
  if (wants_checkpoint_) return;
  if (checkpoint_request_ms_ && now_ms_ - *checkpoint_request_ms_ < kAskAgainMs) return;
  checkpoint_request_ms_ = now_ms_;
  act(AskCheckpoint{leader()});
}

void Supervisor::on(const BringBack& e) {
  Replica& r = at(e.replica);
  if (phase_ != Phase::kServing || !r.member || analyses(r)) return;
  if (!r.has_node()) {
    bring_back(r, e.plan);
  } else if (r.drained) {
    r.next = e.plan;  // its node is about to end
  }
}

void Supervisor::bring_back(Replica& r, const Plan& plan) {
  r.returns.forget();
  start(r, plan, name_of(r.number) + " is brought back");
}

void Supervisor::on(const Resume& e) {
  Replica& r = at(e.replica);
  const std::string name = name_of(r.number);
  if (settings_.host ? stopping() : phase_ != Phase::kServing) {
    return settings_.host ? answer("stopping", name + " is being stopped")
                          : answer("busy", "the group is starting or ending");
  }
  if (r.returns.planned() && !r.has_node()) {
    r.forgets = r.forgets || e.forgets;
    r.returns.hurry(now_ms_);
    return answer("", name + " is started");
  }
  if (!settings_.host && (!r.member || analyses(r))) {
    return answer("unsupported", name + " is no member that has clients");
  }
  if (!r.drained || r.has_node()) {
    return answer("busy", "the node of " + name + " runs, or is about to end");
  }
  if (!settings_.host) {
    bring_back(r, {.from = Plan::From::kCheckpoint});
    return answer("", name + " is started");
  }
  r.resumes = answers_ = true;
  r.resume_failure.clear();
  r.returns.forget();
  start(r, {.from = Plan::From::kStore, .forgets = e.forgets});
}

void Supervisor::answer(const char* error, std::string text) {
  act(Answer{error, std::move(text)});
}

}  // namespace crane::supervise
