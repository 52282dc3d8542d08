// SPDX-License-Identifier: Apache-2.0
// The crane-run that started this node may die, and another one take its place.
//
// INVARIANT SUPERVISE-1  A node has at most one supervisor: a second one is refused while the first
//                        one's channel is open.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>

#include "dmt/base/assert.h"
#include "proxy/node/node.h"
#include "runtime/control/schema.h"

namespace crane::node {

void Node::watch_supervisor() {
  watch(control_event_, control_.fd(),
        [](int, short, void* node) { static_cast<Node*>(node)->on_control_message(); });
}

// The replica goes on: its clients are none of crane-run's business.
void Node::lose_supervisor() {
  event_del(&control_event_);
  control_.replace(-1);
  ports_->ask_again();
  if (done_ || stopping_) return;
  spdlog::warn(
      "crane-run is gone: this replica goes on; crane-run, started again with the same "
      "command, takes it over");
}

// Whether whoever connected has become this node's crane-run; the descriptor is ours then.
bool Node::take_supervisor(int fd, const std::string& text) {
  const control::Parsed parsed = control::parse(control::Channel::kNode, text);
  if (!parsed.message || !parsed.message->is("supervise")) return false;
  std::string answer;
  if (config_.host || replay_ != nullptr || consensus_ == nullptr) {
    answer = refused("unsupported", "no crane-run started this node");
  } else if (control_.fd() >= 0) {
    answer = refused("busy", "a crane-run supervises this node");  // SUPERVISE-1
  } else {
    answer = accepted("taken over");
  }
  const bool taken = control_.fd() < 0 && nlohmann::json::parse(answer).value("ok", false);
  const bool told = ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
  if (!taken || !told) {
    ::close(fd);
    return true;
  }
  spdlog::info("another crane-run has taken this replica over");
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  control_.replace(fd);
  watch_supervisor();
  tell_supervisor();
  return true;
}

// All that it would know had it been there from the beginning.
void Node::tell_supervisor() {
  CRANE_ASSERT(control_.fd() >= 0);
  proxy_->for_each_listener([this](std::uint16_t port, int fd) {
    control_.send_with({{"t", "listener"}, {"port", port}}, fd);
  });
  control_.send({{"t", "role"},
                 {"role", leads_ ? "leader" : consensus::name(role_)},
                 {"view", view_counter(view_)}});
  control_.send({{"t", "refused"}, {"why", refused_}});
  tell_members();
  if (guard_->running() && guard_->pid() > 0) {
    control_.send({{"t", "server"}, {"pid", guard_->pid()}});
    control_.send({{"t", "ready"}});
    ask_for_missing_listeners();
  }
  if (exit_reported_) tell_exit();
}

// Ports that the server opened while nobody was there to open them on this machine.
void Node::ask_for_missing_listeners() {
  for (std::uint32_t i = 1; i <= layout_->scheduler.files_used; ++i) {
    const dmt::FileRecord& f = layout_->files[i];
    if (f.kind == dmt::FileKind::kListener) ask_for_listener(f.listener.port, f.listener.backlog);
  }
}

}  // namespace crane::node
