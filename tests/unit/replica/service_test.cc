// SPDX-License-Identifier: Apache-2.0
// GOAL    Clients are accepted exactly while this replica leads and its server knows that.
// METHOD  The machine alone: the test is consensus, the log, the sockets and the server.
// CHECKS  SERVE-1, LEAD-2; the order in which a deposed replica leaves; an earlier leader's
//         sockets.
#include "proxy/replica/role/service.h"

#include <catch2/catch.hpp>
#include <string>

using namespace crane;
using namespace crane::replica::service;

namespace {

constexpr std::int64_t kNow = 1000;

struct Names {
  std::string operator()(const StopServing&) { return "stop "; }
  std::string operator()(const FollowRole& a) { return a.refuses ? "follow-refuse " : "follow "; }
  std::string operator()(const EndClients&) { return "end "; }
  std::string operator()(const BecomeWriter&) { return "writer "; }
  std::string operator()(const ProposeStart&) { return "start "; }
  std::string operator()(const AdoptSockets&) { return "collect "; }
  std::string operator()(const Serve&) { return "serve "; }
  std::string operator()(const Refuse& a) { return a.on ? "refuse " : "take "; }
  std::string operator()(const ReportQuorum& a) { return a.lost ? "lost " : "back "; }
  std::string operator()(const StatusChanged&) { return "changed "; }
};

struct World {
  Service service;
  Round round;
  Writer writer;

  World() { round.leads = round.is_active = true; }
  std::string step(const Event& event, std::int64_t now_ns = kNow) {
    service.step(event, now_ns);
    std::string logged;
    ActionList actions;
    while (service.take_actions(actions)) {
      for (const Action& action : actions) logged += std::visit(Names{}, action);
    }
    return logged;
  }
};

}  // namespace

TEST_CASE_METHOD(World, "START comes first, then the server admits it, then clients are accepted",
                 "[service][SERVE-1][LEAD-2]") {
  round.changed = true;
  CHECK(step(round) == "follow changed writer ");
  writer.ours = true;
  CHECK(step(writer) == "start ");
  CHECK(step(StartProposed{true}).empty());
  CHECK(service.deadline_ns() == kNow);  // for the earlier leader's sockets
  round.changed = false;
  round.started = writer.started = true;
  CHECK(step(round) == "writer ");
  CHECK(step(writer) == "collect ");
  CHECK(step(writer).empty());
  writer.admitted = true;
  CHECK(step(writer) == "serve changed ");
  round.serves = true;
  CHECK(step(round).empty());  // later rounds have nothing to do
}

TEST_CASE_METHOD(World, "clients wait while an earlier leader of the host may use their sockets",
                 "[service]") {
  writer.started = writer.admitted = true;
  CHECK(step(writer).empty());
  writer.ours = true;
  CHECK(step(writer) == "serve changed ");
}

TEST_CASE_METHOD(World, "a START that was not proposed is tried again", "[service]") {
  writer.ours = true;
  CHECK(step(writer) == "start ");
  CHECK(step(StartProposed{false}).empty());
  CHECK(service.deadline_ns() == replica::kNever);
  CHECK(step(writer) == "start ");
}

TEST_CASE_METHOD(World, "a deposed replica leaves its clients before anything else",
                 "[service][SERVE-1]") {
  round.deposed = round.changed = round.serves = round.started = true;
  round.stopping = true;
  round.leads = false;
  CHECK(step(round) == "stop changed follow changed ");
  round.leads = true;  // elected again, unnoticed: its clients must be accepted again
  round.started = false;
  CHECK(step(round) == "stop changed follow changed writer ");
}

TEST_CASE_METHOD(World, "a deposed replica collects no sockets of the reign that it lost",
                 "[service]") {
  CHECK(step(StartProposed{true}).empty());
  round.deposed = true;
  CHECK(step(round) == "stop changed writer ");
  CHECK(service.deadline_ns() == replica::kNever);
}

TEST_CASE_METHOD(World, "a replica that stops ends its clients, and accepts no others",
                 "[service]") {
  round.serves = round.started = round.stopping = true;
  round.is_active = false;
  CHECK(step(round) == "end ");
  round.serves = false;
  CHECK(step(round).empty());
}

TEST_CASE_METHOD(World, "a lost quorum refuses clients until it has returned", "[service]") {
  CHECK(step(Quorum{{3, 3, true}}) == "changed ");
  CHECK(step(Quorum{{3, 3, true}}).empty());
  CHECK(step(Quorum{{3, 1, false}}) == "changed lost refuse changed ");
  CHECK(service.why_not_served(Service::Supervisor::kHosts) ==
        "no quorum: 1 of 3 replicas answer; clients are refused");
  round.changed = true;
  CHECK(step(round) == "follow-refuse changed writer ");
  CHECK(step(Quorum{{3, 2, true}}) == "changed back take changed ");
  CHECK(service.why_not_served(Service::Supervisor::kNone).empty());
}
