// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/service.h"

namespace crane::replica::service {

void Service::step(const Event& event, std::int64_t now_ns) {
  now_ns_ = now_ns;
  std::visit([this](const auto& e) { on(e); }, event);
}

void Service::on(const Round& round) {
  if (round.deposed) {
    collects_at_ns_ = kNever;
    act(StopServing{});  // SERVE-1
    act(StatusChanged{});
  }
  if (round.changed) {
    act(FollowRole{quorum_.lost()});
    act(StatusChanged{});
  }
  const bool serves = round.serves && !round.deposed;
  if (round.stopping && serves) act(EndClients{});
  if (!round.leads || !round.is_active || (serves && round.started)) return;
  act(BecomeWriter{});  // an earlier leader of this host ends while START is being agreed on
}

void Service::on(const Writer& writer) {
  if (!writer.started) return act(ProposeStart{});
  if (!writer.ours) return;
  if (std::exchange(collects_at_ns_, kNever) != kNever) act(AdoptSockets{});
  if (!writer.admitted || writer.serves) return;  // LEAD-2
  act(Serve{});
  act(StatusChanged{});
}

// The sockets are collected after the server has received START, which takes it a while.
void Service::on(const StartProposed& start) {
  if (start.ok) collects_at_ns_ = now_ns_;
}

void Service::on(const Quorum& quorum) {
  if (std::exchange(answering_, quorum.seen.answering) != quorum.seen.answering) {
    act(StatusChanged{});
  }
  const QuorumWatch::Change change = quorum_.step(quorum.seen, now_ns_);
  if (change == QuorumWatch::Change::kNone) return;
  act(ReportQuorum{quorum_.lost()});
  act(Refuse{quorum_.lost()});
  act(StatusChanged{});
}

// On one host there is no other replica to connect to, and waiting clients continue at the exact
// byte.
std::string Service::why_not_served(Supervisor supervisor) const {
  if (supervisor == Supervisor::kHosts) return quorum_.text("clients are refused");
  if (quorum_.majority()) return quorum_.text("clients wait");
  switch (supervisor) {
    case Supervisor::kStopped:
      return quorum_.text(
          "clients wait until crane-run, which is stopped, continues (kill -CONT) and has brought "
          "the others back");
    case Supervisor::kNone:
      return quorum_.text("clients wait until crane-run is started again with the same command");
    default:
      return quorum_.text("clients wait until crane-run has brought the others back");
  }
}

}  // namespace crane::replica::service
