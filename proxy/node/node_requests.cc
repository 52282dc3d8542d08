// SPDX-License-Identifier: Apache-2.0
// Requests of operators and crane-run to the node.
#include <signal.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "dmt/base/clock.h"
#include "proxy/node/node.h"
#include "runtime/setup/preflight.h"

namespace crane::node {
namespace {

// Another crane-run has taken over this replica: sends it the state that it would know if it had
// started the group.
void introduce(Supervisor& supervisor, const proxy::Proxy& proxy,
               const replica::Leadership& leadership, const Recovery& recovery,
               const ReplicaServer& server, const consensus::Consensus& group,
               Listeners& listeners) {
  spdlog::info("another crane-run has taken over this replica");
  proxy.for_each_listener([&](const Place& place, int fd) { supervisor.hand_over(place, fd); });
  supervisor.role(leadership.leads() ? "leader" : consensus::name(leadership.role()),
                  view_counter(leadership.view()));
  supervisor.refused_dumps(recovery.refusal());
  if (recovery.acceptor_only()) supervisor.acceptor_only();
  supervisor.members(group);
  if (server.pid() > 0) {
    supervisor.server(server.pid());
    supervisor.ready();
    listeners.open_all(false);
  }
  const ServerExit& exit = server.exit();
  if (exit.reported()) supervisor.exit(exit);
}

}  // namespace

// --- operators ----------------------------------------------------------------------------------

// Whether the connection's other end is now this node's crane-run; then supervisor_ owns `fd`.
bool Node::take_over(int fd, const std::string& request) {
  const Supervisor::Offer offer =
      supervisor_.offer(fd, request, host_ != nullptr || !mode_.member());
  if (offer == Supervisor::Offer::kTaken) {
    introduce(supervisor_, *proxy_, leadership_, *recovery_, *server_, *consensus_, *listeners_);
  }
  return offer != Supervisor::Offer::kAnother;
}

nlohmann::json Node::status_json() { return status_->answer(); }

std::string Node::status_text() { return status_->answer().dump(2); }

// For maintenance, or to restart elsewhere in the log: stops this replica cleanly.
void Node::drain() {
  const Outcome marked = write_file(config_.replica_dir() + "/" + setup::kDrainedMark, "");
  if (!marked.ok()) spdlog::warn("{}: {}", setup::kDrainedMark, marked.error().message());
  if (status_ != nullptr) status_->is_drained();
  end_.leave_now();
}

void Node::signalled(int signo) {
  if (signo == SIGTERM) return requests_->leave_after_drain();
  if (!mode_.takes_interrupt()) stop_requested();
}

// --- crane-run ----------------------------------------------------------------------------------

void Node::listen_failed(const Place& place, int error, const std::string& message) {
  spdlog::error("no listener for {}: {}", place::text(place), message);
  listeners_->settled(place, error);
}

void Node::listener_lost() {
  listeners_->ask_again();
  listeners_->open_all(false);
}

void Node::not_published(const Place& place) {
  spdlog::info("port {} of the server is not published: clients do not reach it", place.port);
  listeners_->settled(place, 0);
}

void Node::stop_requested() { end_.request(monotonic_ns(), server_->exit().reported()); }

void Node::signal_requested(std::uint32_t signo, std::uint32_t pid) {
  if (leadership_.leads()) proxy_->batch().add(EntryType::kSignal, SignalBody{signo, pid});
}

void Node::member_requested(const control::Message& change) {
  (void)requests_->change_member(change);  // crane-run sends it again
}

// The replica continues: it serves clients without crane-run.
void Node::supervisor_lost() {
  listeners_->ask_again();
  status_->changed(now_ns_);
  if (end_.done() || end_.stopping()) return;
  spdlog::warn(
      "crane-run is gone: this replica continues; crane-run, started again with the same "
      "command, takes it over");
  if (const std::string why = service_->why_not_served(); !why.empty()) spdlog::error("{}", why);
}

}  // namespace crane::node
