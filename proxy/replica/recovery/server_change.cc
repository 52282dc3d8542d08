// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/recovery/server_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::replica {

using namespace change;

namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr const char* kEndedByItself = "it ended by itself; see server.log";

}  // namespace

void ServerChange::step(const Event& event, std::int64_t now_ns) {
  now_ns_ = now_ns;
  std::visit([this](const auto& e) { on(e); }, event);
}

bool ServerChange::take_actions(ActionList& out) {
  out.clear();
  std::swap(out, actions_);
  return !out.empty();
}

void ServerChange::fail(Fail::Cause cause, std::string why) {
  actions_.emplace_back(Fail{cause, std::move(why)});
}

void ServerChange::log_message(bool warns, std::string text) {
  actions_.emplace_back(LogMessage{warns, std::move(text)});
}

// --- the leader --------------------------------------------------------------------------------

void ServerChange::on(const OperatorRequest& asked) {
  ask(asked, asked.kind == OperatorRequest::For::kRestart ? Purpose::kRestart : Purpose::kReplace);
}

void ServerChange::ask(const OperatorRequest& asked, Purpose purpose) {
  std::string why;
  if (const char* refused = refusal(asked, why)) {
    return answer(purpose, refused, Index{}, std::move(why));
  }
  actions_.emplace_back(
      Propose{purpose, RestartBody{RestartBody::kEnd, asked.patience_s}, asked.next, true});
}

// The kind of the refusal, and `why`; nullptr: the server can be ended for this.
const char* ServerChange::refusal(const OperatorRequest& asked, std::string& why) const {
  const bool restart = asked.kind == OperatorRequest::For::kRestart;
  const bool hands_over = asked.kind == OperatorRequest::For::kHandOver;
  if (restart && !options_.restarts) {
    why =
        "this group does not allow the server to be ended for a checkpoint: start it with "
        "--restart-checkpoints ([group] restart_checkpoints = true)";
    return "unsupported";
  }
  if (hands_over && options_.log_ends) {
    why =
        "the log of this group is in the memory of its nodes, and all of them end: stop the group "
        "and start it with the other build";
    return "unsupported";
  }
  if (!restart && !options_.container) {
    why = hands_over ? "without a container the server's files are not kept in a checkpoint: stop "
                       "the group and start it with the other build"
                     : "without a container the server's files cannot be rolled back: stop the "
                       "group and start it with the new command line";
    return "unsupported";
  }
  if (busy() || packing_ns_ != 0) {
    why = "the server is already being restarted";
    return "busy";
  }
  const bool too_long = sizeof(RestartBody) + asked.next.size() > kDataBytesMax;
  why = asked.bad.empty() && too_long ? "that is too long" : asked.bad;
  return why.empty() ? nullptr : "bad_argument";
}

void ServerChange::answer(Purpose purpose, const char* refusal, Index index, std::string text) {
  if (purpose != Purpose::kScheduled) {
    actions_.emplace_back(Answer{refusal, index, std::move(text)});
  } else {
    log_message(false, "a checkpoint is due, and CRIU refuses: " + text);
  }
}

void ServerChange::on(const Proposed& proposed) {
  const bool well = proposed.why_not.empty();
  switch (proposed.purpose) {
    case Purpose::kRestart:
    case Purpose::kScheduled:
    case Purpose::kReplace: {
      if (!well) return answer(proposed.purpose, "busy", Index{}, proposed.why_not);
      const bool replaces = proposed.purpose == Purpose::kReplace;
      if (!replaces) schedule_request_ns_ = now_ns_;
      return answer(
          proposed.purpose, nullptr, proposed.index,
          fmt::format("the server of every replica ends at entry {}{}", value(proposed.index),
                      replaces ? "" : ", and starts again on its files"));
    }
    case Purpose::kEndOfTrial:
    case Purpose::kKeep:
      if (well) trial_end_view_ = tick_.view;
      return;
    case Purpose::kBegin:
      if (well) begin_proposed_ = tick_.view;  // RESTART-1
  }
}

// The leader's decision about a server on trial: it stays, or it did not listen in time.
void ServerChange::decide_trial(const Tick& tick) {
  if (!upgrade_.on_trial()) {
    trial_ns_ = 0;
    return;
  }
  if (trial_ns_ == 0) trial_ns_ = now_ns_;
  if (!tick.may_lead || trial_end_view_ == tick.view || upgrade_.keeps()) return;
  const bool listens = listens_ns_ != 0;
  if (listens && now_ns_ - listens_ns_ >= kTrialNs) {
    actions_.emplace_back(Propose{Purpose::kKeep, RestartBody{RestartBody::kKeep}, "", false});
  } else if (!listens && now_ns_ - trial_ns_ >= upgrade_.patience_s() * kSecondNs) {
    actions_.emplace_back(Propose{Purpose::kEndOfTrial, RestartBody{RestartBody::kEnd}, "", true});
  }
}

// Requests a checkpoint only if CRIU refuses the server and clients have sent something since the
// last.
void ServerChange::ask_by_schedule(const Tick& tick) {
  if (!tick.serves || options_.every_ns == 0 || !tick.refused) return;
  if (schedule_request_ns_ == 0) schedule_request_ns_ = now_ns_;
  if (now_ns_ - schedule_request_ns_ < options_.every_ns) return;
  schedule_request_ns_ = now_ns_;
  if (std::exchange(inputs_at_request_, tick.inputs) == tick.inputs) return;
  ask(OperatorRequest{}, Purpose::kScheduled);
}

void ServerChange::propose_begin(const Tick& tick) {
  if (!restarter_.was_notified()) {
    ending_ns_ = 0;
    return;
  }
  if (ending_ns_ == 0) ending_ns_ = now_ns_;
  const bool late = now_ns_ - ending_ns_ >= kEndNs;
  // A dead server admits nothing, not even START.
  const bool may_lead = tick.may_lead || upgrade_.dead();
  if (!may_lead || begin_proposed_ == tick.view || !(restarter_.ended() || late)) return;
  if (!restarter_.ended()) log_message(true, "the server does not end: it is killed");
  actions_.emplace_back(Propose{Purpose::kBegin, RestartBody{RestartBody::kBegin}, "", false});
}

// --- every replica -----------------------------------------------------------------------------

void ServerChange::on(const Committed& entry) {
  switch (entry.body.step) {
    case RestartBody::kEnd:
      return end_committed(entry);
    case RestartBody::kBegin:
      return begin_committed(entry);
    case RestartBody::kKeep:
      upgrade_.keep_committed(entry.place.at.at.index);
      if (!upgrade_.dead()) return;
      return fail(
          Fail::Cause::kServerNotStarted,
          "the upgraded server starts on other replicas but not on this one: " + upgrade_.why());
    default:
      return;
  }
}

void ServerChange::end_committed(const Committed& entry) {
  const Index at = entry.place.at.at.index;
  if (!restarter_.end_committed(at)) return;
  if (upgrade_.on_trial() && !upgrade_.keeps()) {
    upgrade_.failed(fmt::format("it did not listen within {} s", upgrade_.patience_s()));
  }
  stays_if_admitted(upgrade_.kept_at());  // UPGRADE-3
  next_build_.clear();
  begin_proposed_ = View{};
  if (entry.next && !upgrade_.open()) {
    const Next& next = *entry.next;
    next_build_ = next.build;
    if (next.build.empty() && next.same_program) {
      upgrade_.asked(at, next.before, next.server, entry.body.patience_s);
      trial_end_view_ = View{};
    } else if (next.build.empty()) {
      fail(Fail::Cause::kDisagrees,
           next.server.command[0] +
               " is not the one that the leader upgrades the server to; make it equal on all "
               "hosts");
    }
  }
  actions_.emplace_back(KeepFiles{at});
  log_message(false,
              fmt::format("entry {}: the server ends, and another one takes its place", value(at)));
}

void ServerChange::begin_committed(const Committed& entry) {
  // The leader's server is ahead, and has ended on trial: this one will end at the same turn.
  if (upgrade_.on_trial()) trial_failed(kEndedByItself, false);
  if (!restarter_.begin_committed(entry.place.at.at.index)) return;
  due_ = false;  // an earlier place that was not published in time
  actions_.emplace_back(NotePlace{entry.place});
}

void ServerChange::on(const Admitted& entry) {
  restarter_.admitted(entry.at);
  stays_if_admitted(entry.at);
}

void ServerChange::stays_if_admitted(Index at) {
  if (!upgrade_.admitted(at)) return;
  log_message(false,
              fmt::format("entry {}: the upgraded server stays, clients are let in", value(at)));
  if (options_.keeps_files) actions_.emplace_back(LeaveFiles{});
  CRANE_ASSERT(!upgrade_.undecided());  // UPGRADE-1
  for (const PutOut& output : kept_back_) {
    actions_.emplace_back(LetIn{output, &output == &kept_back_.back()});
  }
  kept_back_.clear();
}

void ServerChange::on(const EndedAtTurn&) {
  if (upgrade_.undecided()) return trial_failed(kEndedByItself, false);
  restarter_.server_ended();
}

void ServerChange::on(const FailedToStart& server) {
  if (!upgrade_.undecided()) return;
  log_message(true, "the upgraded server does not start: " + server.why);
  trial_failed(server.why, true);
  ended_in_kernel_ = true;
  not_kept_.clear();
}

// The leader requests its end, even if it requested another in this view before.
void ServerChange::trial_failed(const std::string& why, bool dead) {
  if (!under_way()) begin_proposed_ = View{};
  upgrade_.failed(why, dead);
  restarter_.ended_on_trial();
}

void ServerChange::on(const PutOut& output) {
  if (!holds_back(output.header)) return;
  if (output.header.type == OutputType::kListen && listens_ns_ == 0) listens_ns_ = now_ns_;
  kept_back_.push_back(output);
}

void ServerChange::on(const EndedInKernel& server) {
  if (!expects_kernel_end()) return;
  ended_in_kernel_ = true;
  not_kept_ = server.not_kept;
}

void ServerChange::on(const Tick& tick) {
  tick_ = tick;
  propose_begin(tick);
  decide_trial(tick);
  ask_by_schedule(tick);
  const bool complete = handed_over_ || (tick.runs && !upgrade_.undecided());
  if (due_ && complete && tick.publishes) {  // RESTART-2
    due_ = false;
    packing_ns_ = now_ns_;
    actions_.emplace_back(Publish{restarter_.at()});
  }
  due_ns_ = kNever;
  if (restarter_.state() == Restarter::State::kHolding) due_ns_ = now_ns_ + kLookNs;
  if (restarter_.state() == Restarter::State::kEnding || upgrade_.undecided()) {
    due_ns_ = std::min(due_ns_, now_ns_ + kWaitNs);
  }
  if (upgrade_.dead()) {
    over();
  } else if (restarter_.looks(tick.applied)) {
    actions_.emplace_back(LookWhetherOver{});
  }
  begin_if_ended();
}

void ServerChange::on(const Looked& looked) {
  if (!looked.over) return;
  over();
  begin_if_ended();
}

void ServerChange::over() {
  if (!restarter_.over()) return;  // RESTARTER-2
  actions_.emplace_back(NoteServer{upgrade_.dead()});
  // If the server has ended, the kernel needs no order.
  if (!restarter_.ended()) actions_.emplace_back(EndServer{});
}

void ServerChange::on(const EndRefused& refused) {
  fail(Fail::Cause::kServerNotStarted, "the server cannot be ended: " + refused.why);
}

// The files of the old server no longer change.
void ServerChange::begin_if_ended() {
  if (!ended_in_kernel_ || tick_.done || !restarter_.has_ended()) return;
  ended_in_kernel_ = false;
  rolls_back_ = upgrade_.rolls_back();
  if (!not_kept_.empty() && !rolls_back_) {
    return fail(Fail::Cause::kServerNotStarted, "the server's files cannot be kept: " + not_kept_);
  }
  const Upgrade::Server* next = upgrade_.begun();
  if (!next_build_.empty()) return hand_over();
  kept_back_.clear();
  listens_ns_ = 0;
  BeginServer begins;
  if (next != nullptr) begins.server = *next;
  begins.on_files_before = rolls_back_;  // UPGRADE-2
  begins.leaves_files = options_.keeps_files && !upgrade_.on_trial();
  actions_.emplace_back(std::move(begins));
}

void ServerChange::on(const Begun& begun) {
  if (!begun.why_not.empty()) return fail(Fail::Cause::kNoSegment, begun.why_not);
  const Index at = restarter_.at();
  log_message(
      rolls_back_,
      rolls_back_
          ? fmt::format("entry {}: the upgrade is rolled back: {}", value(at), upgrade_.why())
          : fmt::format("entry {}: a new server takes over the files of the previous one",
                        value(at)));
  due_ = tick_.member && at > tick_.missed;
  actions_.emplace_back(ReleaseLog{});
}

// No server of this build begins; another build starts the next one.
void ServerChange::hand_over() {
  handed_over_ = true;
  // Also for a replica that recovered since, because the other build needs the checkpoint.
  due_ = tick_.member;
  actions_.emplace_back(HandOver{});
  if (!due_) end_handed_over("this replica is new in the group");
}

void ServerChange::end_handed_over(const std::string& why_not) {
  if (!handed_over_ || due_) return;
  actions_.emplace_back(EndHandedOver{
      fmt::format("the server ended at entry {}, where another build of Crane continues ({}); {}",
                  value(restarter_.at()), next_build_,
                  why_not.empty() ? "its files are kept" : "its files are not kept: " + why_not)});
}

void ServerChange::on(const Packed& packed) {
  const std::int64_t took_ns = now_ns_ - std::exchange(packing_ns_, 0);
  if (packed.why_not.empty()) {
    actions_.emplace_back(Published{packed.at, took_ns});
  } else {
    actions_.emplace_back(NotPublished{packed.at, packed.why_not});
  }
  if (!packed.begun) actions_.emplace_back(AbandonPacking{});
  end_handed_over(packed.why_not);
}

}  // namespace crane::replica
