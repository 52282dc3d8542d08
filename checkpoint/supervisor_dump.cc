// SPDX-License-Identifier: Apache-2.0
// The supervisor's part of a dump: a conversation with CRIU (criu.h) at the node's pace
// (container.h).
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "checkpoint/container_supervisor.h"
#include "checkpoint/criu.h"
#include "checkpoint/fault_points.h"
#include "checkpoint/orphans.h"
#include "checkpoint/tree.h"

namespace crane::checkpoint {
namespace {

// While CRIU prepares, it has a small share of the processors for this long, so that the running
// server hardly notices it. Then it gets the usual share.
constexpr unsigned kPreparingPercent = 30;
constexpr int kPreparingMs = 300;
// A dump that takes no longer than this needs no boost.
constexpr int kPatienceMs = 80;
// How long CRIU may take to end after its last message.
constexpr int kEndMs = 5'000;

bool ended_in_time(pid_t pid, int timeout_ms, int& status) {
  const int watch = open_pidfd(pid);
  pollfd fd{watch, POLLIN, 0};
  const bool in_time = watch >= 0 && poll(&fd, 1, timeout_ms) > 0;
  if (watch >= 0) close(watch);
  if (!in_time) ::kill(-pid, SIGKILL);
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) remove_directories_of_criu();
  return in_time;
}

int open_directory(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

}  // namespace

void ContainerSupervisor::take_requests() {
  for (;;) {
    Request request{};
    const ssize_t got = recv(channel_, &request, sizeof request, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got == sizeof request) {
      take_request(request);
      continue;
    }
    node_lost_ = true;
    if (!dump_) return;
    dump_->freeze = dump_->thaw = true;  // the node cannot request it any more
    set_criu_deadline();
    if (dump_->place == Dump::Place::kDumped) start_next_step();
    return;
  }
}

void ContainerSupervisor::take_request(const Request& request) {
  const auto refuse = [this](const Error& error) {
    Report answer{Report::Kind::kDumped};
    answer.error.take(error);
    reason_.copy(answer.reason, kReasonMax - 1);
    report(answer);
  };
  switch (request.what) {
    case Request::kPrepare:
    case Request::kAllAtOnce:
      times_ = {};
      reason_.clear();
      if (const Outcome begun = begin_dump(request); !begun) {
        leave_dump();
        refuse(begun.error());
      }
      return;
    case Request::kFreeze:
      if (dump_) dump_->freeze = true;
      if (dump_) dump_->may_boost = request.boost;
      return start_next_step();
    case Request::kThaw:
    case Request::kGiveUp:
      if (dump_) {
        dump_->thaw = true;
        dump_->well = dump_->well && request.what == Request::kThaw;
      }
      return start_next_step();
    case Request::kKeep:
      kept_ = request.upper;
      return;
    case Request::kEnd:
      end_requested_ = true;
      return;
    case Request::kCancel:
      if (!dump_) return;  // the answer was sent already
      leave_dump();
      return refuse(Error{Code::kGone, 0, "the checkpoint was given up"});
  }
}

Outcome ContainerSupervisor::begin_dump(const Request& request) {
  if (dump_) return Error{Code::kBusy, 0, "a dump is under way"};
  fault_point("dump.begun");
  dump_.emplace();
  dump_->upper = request.upper;
  dump_->freeze = dump_->thaw = request.what == Request::kAllAtOnce;
  dump_->since_us = now_us();
  set_criu_deadline();
  CriuCall call;
  call.first = server_.first_;
  call.images = request.images;
  call.work = work_directory(server_.options_.directory);
  unlink(log_of_failure(server_.options_.directory).c_str());
  remove_tree(call.work);
  for (const auto& directory : {call.work, call.images}) {
    if (auto made = make_directories(directory); !made) return made;
  }
  if (auto described = server_.describe(call); !described) return described;
  auto program = find_criu();
  if (!program) return program.error();
  dump_->images = open_directory(call.images);
  dump_->work = open_directory(call.work);
  const std::string request_text = dump_request(call, dump_->images, dump_->work);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error("socketpair");
  }
  dump_->channel = ends[0];
  auto child = start_criu(program.value(), call, ends[1]);
  close(ends[1]);
  if (!child) return child.error();
  dump_->criu = child.value();
  if (!dump_->freeze) {
    (void)dump_->background.enter(dump_->criu, kPreparingPercent);
    set_pace(Pace::kSmall);
  }
  // If CRIU is gone already, the closed channel shows it.
  (void)send(dump_->channel, request_text.data(), request_text.size(), MSG_NOSIGNAL);
  fault_point("dump.preparing");
  return Done{};
}

// Sets the deadline for CRIU's next message.
void ContainerSupervisor::set_criu_deadline() {
  dump_->deadline_ms = now_ms() + (node_lost_ ? kOrphanTimeoutMs : server_.options_.criu_limit_ms);
}

void ContainerSupervisor::answer_criu(bool go_on) {
  set_criu_deadline();
  const std::string answer = criu_answer(go_on);
  (void)send(dump_->channel, answer.data(), answer.size(), MSG_NOSIGNAL);
}

// The time until CRIU is late, or its pace must go up; -1: never.
int ContainerSupervisor::dump_timeout_ms() {
  if (!dump_ || dump_->deadline_ms == 0) return -1;
  const bool works =  // otherwise it waits for an answer
      dump_->place == Dump::Place::kStarting || dump_->place == Dump::Place::kWorking;
  const auto due = works && dump_->faster_at_ms != 0
                       ? std::min(dump_->deadline_ms, dump_->faster_at_ms)
                       : dump_->deadline_ms;
  return static_cast<int>(std::max<std::int64_t>(due - now_ms(), 0));
}

// Answers CRIU, if it waits and the node has sent the request for the next step.
void ContainerSupervisor::start_next_step() {
  if (!dump_) return;
  Dump& d = *dump_;
  if (d.place == Dump::Place::kReady && d.freeze) {
    d.place = Dump::Place::kWorking;
    d.since_us = now_us();
    set_pace(Pace::kCommon);
    answer_criu(true);
    fault_point("dump.running");
  } else if (d.place == Dump::Place::kDumped && d.thaw) {
    d.place = Dump::Place::kWorking;
    times_.waiting = now_us() - d.since_us;
    d.since_us = now_us();
    answer_criu(d.well);
  }
}

// A dump is some hundred exchanges between CRIU and the server's processes. On a busy machine each
// of them waits for a processor, and the dump takes five times as long. So a slow dump gives CRIU
// and this process a real-time priority, but only on the server's processors: the server is paused
// and does not need them. The priority does not begin with the dump, because other processes on
// these processors notice it, for some 50 ms.
void ContainerSupervisor::boost() {
  sched_param priority{};
  cpu_set_t its;
  policy_ = sched_getscheduler(0);
  const bool known = policy_ >= 0 && sched_getaffinity(0, sizeof processors_, &processors_) == 0 &&
                     sched_getaffinity(server_.first_, sizeof its, &its) == 0;
  if (!known) return;
  dump_->pace = Pace::kBoost;
  priority.sched_priority = 1;
  for (const pid_t pid : {0, dump_->criu}) {
    (void)sched_setaffinity(pid, sizeof its, &its);
    if (sched_setscheduler(pid, SCHED_RR, &priority) == 0 || pid == 0) continue;
    // Kernels with CONFIG_RT_GROUP_SCHED forbid real-time priorities in a new control group.
    if (dump_->background.leave(pid)) (void)sched_setscheduler(pid, SCHED_RR, &priority);
  }
}

void ContainerSupervisor::leave_boost() {
  const sched_param none{};
  (void)sched_setscheduler(0, policy_, &none);
  (void)sched_setaffinity(0, sizeof processors_, &processors_);
}

// Sets CRIU's pace and when it goes up next: until CRIU has taken long, the server's clients come
// first.
void ContainerSupervisor::set_pace(Pace pace) {
  Dump& d = *dump_;
  d.faster_at_ms = 0;
  if (pace == Pace::kBoost) return boost();
  d.pace = pace;
  const bool works = d.place == Dump::Place::kWorking;
  if (pace == Pace::kSmall || (works && d.may_boost)) {
    d.faster_at_ms = now_ms() + (works ? kPatienceMs : kPreparingMs);
  }
  (void)d.background.set(pace == Pace::kSmall ? kPreparingPercent : Background::kUsual);
}

void ContainerSupervisor::read_criu_messages() {
  const auto step = [this](std::int64_t& took) {
    const auto now = now_us();
    took = now - dump_->since_us;
    dump_->since_us = now;
  };
  char message[4096];
  while (dump_) {
    const ssize_t got = recv(dump_->channel, message, sizeof message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (dump_timeout_ms() != 0) return;
      if (now_ms() >= dump_->deadline_ms) return end_dump(false);
      return set_pace(dump_->may_boost && dump_->place == Dump::Place::kWorking ? Pace::kBoost
                                                                                : Pace::kCommon);
    }
    if (got <= 0) return end_dump(false);
    switch (parse_criu_message({message, static_cast<std::size_t>(got)}).what) {
      case CriuMessage::What::kReady:
        step(times_.starting);
        dump_->place = Dump::Place::kReady;
        dump_->deadline_ms = 0;
        if (!dump_->freeze) report(Report{Report::Kind::kPrepared});
        start_next_step();
        break;
      case CriuMessage::What::kStopped:
        step(times_.stopping);
        answer_criu(true);
        break;
      case CriuMessage::What::kDumped:
        step(times_.dumping);
        dump_->deadline_ms = 0;
        dump_->well = copy_upper().ok() && dump_->well;
        step(times_.copying);
        dump_->place = Dump::Place::kDumped;
        start_next_step();
        break;
      case CriuMessage::What::kOther:
        answer_criu(true);
        break;
      case CriuMessage::What::kDone:
        return end_dump(true);
      case CriuMessage::What::kRefused:
        return end_dump(false);
    }
  }
}

// Called when all is dumped, not earlier: only then does the upper directory contain the temporary
// names that CRIU gives to open files without a name.
Outcome ContainerSupervisor::copy_upper() {
  const Outcome copied = copy_tree(server_.upper_directory(), dump_->upper);
  if (!copied) reason_ = "copy the upper directory: " + copied.error().message();
  return copied;
}

void ContainerSupervisor::end_dump(bool said_well) {
  Report answer{Report::Kind::kDumped};
  if (said_well) {
    times_.thawing = now_us() - dump_->since_us;
    const CriuStats stats = criu_stats(work_directory(server_.options_.directory));
    times_.frozen = stats.frozen;
    times_.memory = stats.memory;
    fault_point("dump.done");
  } else {
    int status = 0;
    // Wait at least kEndMs, even if less of CRIU's time is left: the server continues by now, and
    // would be lost if CRIU were killed while it ends.
    const auto left = std::max<std::int64_t>(dump_->deadline_ms - now_ms(), kEndMs);
    const bool in_time = ended_in_time(dump_->criu, static_cast<int>(left), status);
    dump_->criu = -1;
    const bool died = !in_time || WIFSIGNALED(status);
    server_lost_ = died && dump_->touches_server();
    answer.error.take(
        explain_failure(died, Error{Code::kUnsupported, 0, "CRIU cannot dump the server"}));
  }
  answer.times = times_;
  reason_.copy(answer.reason, kReasonMax - 1);
  report(answer);
  leave_dump();
}

// If CRIU still runs, it has not touched the server yet, or is about to end.
void ContainerSupervisor::leave_dump() {
  if (!dump_) return;
  if (dump_->criu > 0) {
    (void)dump_->background.set(Background::kUsual);  // the node waits for its end
    if (!dump_->touches_server()) ::kill(dump_->criu, SIGKILL);
    int status = 0;
    (void)ended_in_time(dump_->criu, kEndMs, status);
  }
  for (const int fd : {dump_->channel, dump_->images, dump_->work}) {
    if (fd >= 0) close(fd);
  }
  if (dump_->pace == Pace::kBoost) leave_boost();
  dump_.reset();
  remove_tree(work_directory(server_.options_.directory));
}

}  // namespace crane::checkpoint
