// SPDX-License-Identifier: Apache-2.0
// Supervisor: the end of the group, and the view from outside.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "runtime/supervise/supervisor.h"

namespace crane::supervise {
namespace {

constexpr std::int64_t kStopTimeoutMs = 5'000;      // for nodes to stop their servers in order
constexpr std::int64_t kHostStopTimeoutMs = 8'000;  // for each signal of an agent
constexpr std::int64_t kEndTimeoutMs = 20'000;      // for a server to end after its signal

}  // namespace

void Supervisor::on(const Stop& e) {
  if (!stopping()) {
    if (!end_servers(e.why)) stop(e.why, e.signal);
  } else if (!settings_.host) {
    end_harder();  // the second request
  }
}

void Supervisor::on(const Kill&) {
  if (!stopping()) stop(nullptr, SIGTERM);
  signal_ = SIGTERM;  // even if there was another signal before
  end_harder();
}

void Supervisor::on(const Fail& e) { end_with(e.why); }

void Supervisor::on(const Tick&) {
  if (!stopping()) {
    for (Replica& r : replicas_) {
      if (!r.has_node() && !r.looks && r.returns.due(now_ms_)) try_return(r);
    }
    look_after_analysis();
  }
  if (now_ms_ < stop_deadline_ms_) return;
  if (stopping()) return end_harder();
  if (!ending_ && others_go_on()) return return_exited();
  stop(ending_ ? "the server did not end within 20 s" : "the other replicas did not end");
}

void Supervisor::look_after_analysis() {
  if (!analysis_differs()) return;
  const char* const change = place_.change(at(settings_.analysis).member, now_ms_);
  if (change != nullptr) act(AskMember{leader(), change, settings_.analysis});
}

// Ends the servers at one turn, so that they leave equal files on all replicas.  Returns false if
// that is not possible, or was already requested; then the nodes are stopped immediately.
bool Supervisor::end_servers(const char* why) {
  const bool led = leader() >= 0 || 2 * alive() > voters();  // or soon will be
  if (!settings_.keeps_files || phase_ != Phase::kServing || ending_ || !led) return false;
  ending_ = true;
  print_message(std::string(why) + ": the server ends");
  signal_servers();
  stop_deadline_ms_ = now_ms_ + kEndTimeoutMs;
  return true;
}

// Each leader gets the request until a server has ended: an earlier leader may have been lost
// before it had proposed the signal.  A server that gets it twice ends as well.
void Supervisor::signal_servers() {
  const bool ends =
      std::any_of(replicas_.begin(), replicas_.end(), [](auto& r) { return r.exited; });
  if (ending_ && !stopping() && !ends && leader() >= 0) act(SignalServers{leader()});
}

void Supervisor::stop(const char* why, int signal) {
  if (stopping()) return;
  const bool had_nodes = running() > 0;
  phase_ = Phase::kStopping;
  signal_ = signal;
  act(Stopping{});
  if (why != nullptr) print_message(std::string(why) + ", stopping");
  for (const Replica& r : replicas_) {
    if (r.runs) act(EndNode{r.number, signal_});
  }
  stop_deadline_ms_ = now_ms_ + (settings_.host ? kHostStopTimeoutMs : kStopTimeoutMs);
  if (!settings_.host || had_nodes) return;
  const Replica& only = replicas_.front();
  only.returns.planned() || only.drained ? leave(only) : give_up(Done{});
}

// Sends a stronger signal each time, also to nodes that do not answer and cannot stop cleanly.
void Supervisor::end_harder() {
  signal_ = signal_ == SIGINT ? SIGTERM : SIGKILL;
  for (const Replica& r : replicas_) {
    if (r.has_node()) act(EndNode{r.number, signal_});
  }
  stop_deadline_ms_ = now_ms_ + (settings_.host ? kHostStopTimeoutMs : kStopTimeoutMs);
}

void Supervisor::end_with(const Error& problem) {
  if (problem_.ok()) problem_ = problem;
  stop(nullptr);
}

// The group continues without this host.
void Supervisor::leave(const Replica& r) {
  if (!settings_.host || std::exchange(left_, true)) return;
  phase_ = Phase::kStopping;
  act(RemoveNotice{r.number});
  act(Leave{r.wait});
}

void Supervisor::give_up(const Outcome& why) {
  phase_ = Phase::kStopping;
  left_ = true;
  act(GiveUp{why});
}

// --- the view from outside ----------------------------------------------------------------------

int Supervisor::leader() const {
  for (const Replica& r : replicas_) {
    if (r.leads && r.runs) return r.number;
  }
  return -1;
}

int Supervisor::running() const {
  return static_cast<int>(
      std::count_if(replicas_.begin(), replicas_.end(), [](auto& r) { return r.runs; }));
}

int Supervisor::alive() const {
  return static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(), [](const Replica& r) {
    return r.runs && r.votes && r.problem.ok();
  }));
}

int Supervisor::voters() const {
  return static_cast<int>(
      std::count_if(replicas_.begin(), replicas_.end(), [](auto& r) { return r.votes; }));
}

// Whether the group's list differs from the wanted state of the analysis replica.
bool Supervisor::analysis_differs() const {
  if (phase_ != Phase::kServing || settings_.analysis < 0 || leader() < 0) return false;
  return place_.differs(
      replicas_[static_cast<std::size_t>(settings_.analysis - settings_.first)].member);
}

std::string Supervisor::home_of(const Replica& r) const {
  return settings_.dir + "/r" + std::to_string(r.number);
}

const char* Supervisor::role_of(const Replica& r) const {
  if (analyses(r)) return r.runs ? "analysis" : "spare";
  if (r.runs) return r.leads ? "leader" : "follower";
  return !r.member ? "spare" : r.drained ? "drained" : "dead";
}

std::string Supervisor::summary() const {
  const int leads = leader();
  return settings_.group + ": " + std::to_string(alive()) + " of " + std::to_string(voters()) +
         " replicas run, " +
         (leads >= 0 ? "replica " + std::to_string(leads) + " leads" : "none leads");
}

}  // namespace crane::supervise
