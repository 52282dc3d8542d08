// SPDX-License-Identifier: Apache-2.0
#pragma once
// A supervisor in a test: its actions are carried out at once and recorded.

#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "runtime/supervise/supervisor.h"

namespace crane::supervise {

class Watched {
 public:
  Watched() : Watched(group_of(3)) {}
  explicit Watched(Settings settings) : machine(std::move(settings)) {}

  static Settings group_of(int voters, int spares = 0) {
    return {.places = voters + spares, .members = voters, .group = "g", .dir = "/d"};
  }
  static Settings on_a_host() { return {.first = 2, .host = true, .group = "g"}; }

  void step(const Event& event) {
    std::deque<Event> events{event};
    for (; !events.empty(); events.pop_front()) {
      for (const Action& action : machine.step(events.front(), now_ms)) {
        done.push_back(action);
        if (const auto* print_message = std::get_if<PrintMessage>(&action))
          said += print_message->text + "\n";
        if (const auto* a = std::get_if<StartNode>(&action)) {
          if (cannot_start.contains(a->replica)) {
            events.push_back(NotStarted{a->replica, setup::failure(lacks, "no process")});
          } else {
            events.push_back(Started{a->replica});
          }
        }
        if (const auto* a = std::get_if<LookForCheckpoint>(&action)) {
          events.push_back(CheckpointLookup{a->replica, checkpoint});
        }
      }
    }
  }
  // Returns a group that serves; replica 0 leads.
  Watched& serve() {
    step(Start{});
    for (const auto& r : machine.replicas()) {
      if (r.runs) step(Role{r.number, r.number == 0, 1});
      if (r.runs) step(Reported{r.number, Report::kReady});
      if (r.runs) step(Reported{r.number, Report::kServes});
    }
    return forget();
  }
  Watched& forget() {
    done.clear();
    said.clear();
    return *this;
  }
  void kill(int replica) { step(NodeEnded{.replica = replica, .wait = SIGKILL}); }
  // The replica's node reports a reason and ends with that status.
  void fail(int replica, node::ExitStatus status) {
    step(Fatal{replica, node::code(status), "it says why"});
    step(NodeEnded{.replica = replica, .wait = node::code(status) << 8});
  }
  // Advances the clock to the next deadline.
  void wait() {
    REQUIRE(machine.deadline_ms() != Supervisor::kNever);
    now_ms = std::max(now_ms, machine.deadline_ms());
    step(Tick{});
  }
  void tick(std::int64_t later_ms = 0) {
    now_ms += later_ms;
    step(Tick{});
  }
  template <typename A>
  std::vector<A> all() const {
    std::vector<A> found;
    for (const Action& action : done) {
      if (const auto* a = std::get_if<A>(&action)) found.push_back(*a);
    }
    return found;
  }
  template <typename A>
  A last() const {
    REQUIRE_FALSE(all<A>().empty());
    return all<A>().back();
  }
  template <typename A>
  std::size_t count() const {
    return all<A>().size();
  }
  bool has_logged(const std::string& part) const { return said.find(part) != std::string::npos; }
  const Supervisor::Replica& at(int replica) const {
    return *std::find_if(machine.replicas().begin(), machine.replicas().end(),
                         [replica](const auto& r) { return r.number == replica; });
  }

  Supervisor machine;
  std::int64_t now_ms = 1'000'000;
  std::vector<Action> done;
  std::string said;
  std::set<int> cannot_start;
  setup::Status lacks = setup::Status::kSystem;
  bool checkpoint = true;
};

}  // namespace crane::supervise
