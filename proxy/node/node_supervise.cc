// SPDX-License-Identifier: Apache-2.0
// The node and the crane-run that supervises it (supervisor.h).
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "proxy/node/node.h"

namespace crane::node {

void Node::watch_supervisor() {
  SupervisorActions actions;
  actions.on_event = [this] { awake(); };
  actions.listener = [this](std::uint16_t port, int fd) { proxy_->add_listener(port, fd); };
  actions.listen_failed = [this](std::uint16_t port, int error, const std::string& message) {
    spdlog::error("no listener for port {}: {}", port, message);
    ports_->refused(port, error);
  };
  actions.stop = [this] { begin_stop(); };
  actions.status = [this] {
    supervisor_.status(to_json(status()));
    report_status();
  };
  actions.signal = [this](std::uint32_t signo, std::uint32_t pid) {
    if (leadership_.leads()) proxy_->batch().add_signal({signo, pid});
  };
  actions.change_member = [this](const std::string& request) {
    (void)requests_->change_member(
        nlohmann::json::parse(request, nullptr, false));  // crane-run asks again
  };
  actions.checkpoint = [this] { recovery_->ask_if_wanted(); };
  // The replica goes on: its clients are none of crane-run's business.
  actions.gone = [this] {
    ports_->ask_again();
    if (end_.done() || end_.stopping()) return;
    spdlog::warn(
        "crane-run is gone: this replica goes on; crane-run, started again with the same "
        "command, takes it over");
  };
  supervisor_.watch(loop_.base(), std::move(actions));
}

// Whether the connection's other end has become this node's crane-run; the descriptor is the
// supervisor's then.
bool Node::take_supervisor(int fd, const std::string& request) {
  const bool unsupported = config_.host || !mode_.member() || consensus_ == nullptr;
  const Supervisor::Offer offer = supervisor_.offer(fd, request, unsupported);
  if (offer == Supervisor::Offer::kTaken) {
    spdlog::info("another crane-run has taken this replica over");
    tell_supervisor();
  }
  return offer != Supervisor::Offer::kAnother;
}

// All that it would know had it been there from the beginning.
void Node::tell_supervisor() {
  proxy_->for_each_listener(
      [this](std::uint16_t port, int fd) { supervisor_.hand_over(port, fd); });
  supervisor_.role(leadership_.leads() ? "leader" : consensus::name(leadership_.role()),
                   view_counter(leadership_.view()));
  supervisor_.refused_dumps(recovery_->refusal());
  tell_members();
  if (guard_->running() && guard_->pid() > 0) {
    supervisor_.server(guard_->pid());
    supervisor_.ready();
    ask_for_missing_listeners();
  }
  if (exit_.reported()) tell_exit();
}

// Ports that the server opened while nothing was there to open them on this machine.
void Node::ask_for_missing_listeners() {
  for (std::uint32_t i = 1; i <= layout_->scheduler.files_used; ++i) {
    const dmt::FileRecord& f = layout_->files[i];
    if (f.kind == dmt::FileKind::kListener) ask_for_listener(f.listener.port, f.listener.backlog);
  }
}

}  // namespace crane::node
