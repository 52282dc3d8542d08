// SPDX-License-Identifier: Apache-2.0
// The node's dealings with crane-run and with whoever asks for its status.
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include <nlohmann/json.hpp>

#include "proxy/node/node.h"

namespace crane::node {

bool Node::open_control_socket() {
  const std::string path = config_.replica_dir() + "/control.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ::unlink(path.c_str());
  control_socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (control_socket_ < 0 ||
      ::bind(control_socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(control_socket_, 16) != 0) {
    return false;
  }
  have_events_ = true;
  watch(status_event_, control_socket_,
        [](int, short, void* node) { static_cast<Node*>(node)->answer_status_client(); });
  return true;
}

// Whoever connects gets the status, whatever it asks.
void Node::answer_status_client() {
  awake();
  const int client = ::accept4(control_socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  const std::string text = to_json(status()).dump();
  if (::send(client, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    spdlog::warn("a status client left: {}", std::strerror(errno));
  }
  ::close(client);
}

void Node::on_control_message() {
  awake();
  for (;;) {
    Result<ControlMessage> message = control_.receive();
    if (!message.ok()) return;
    if (message.value().text.empty()) {
      spdlog::error("crane-run is gone");
      event_del(&control_event_);
      if (!done_) {
        done_ = true;
        result_ = exit_reported_ ? ExitStatus::kStopped : ExitStatus::kControlLost;
        if (leads_) consensus_->abdicate("crane-run is gone");
      }
      return;
    }
    handle(message.value().text, message.value().fd);
  }
}

void Node::handle(const std::string& text, int fd) {
  const nlohmann::json message = nlohmann::json::parse(text, nullptr, false);
  const std::string type = message.is_object() ? message.value("t", "") : "";
  if (type == "listener" && fd >= 0) {
    proxy_->add_listener(message.value("port", std::uint16_t{0}), fd);
    return;
  }
  if (fd >= 0) ::close(fd);
  if (type == "stop") {
    begin_stop();
  } else if (type == "status") {
    control_.send(to_json(status()));
    report_status();
  } else if (type == "listen_failed") {
    spdlog::error("no listener for port {}: {}", message.value("port", 0),
                  message.value("message", ""));
  } else if (type == "signal" && leads_) {
    proxy_->batch().add_signal({message.value("signo", 0U), message.value("pid", 0U)});
  }
}

void Node::ask_for_listener(std::uint16_t port, std::uint64_t backlog) {
  if (proxy_->has_listener(port)) return;
  control_.send({{"t", "listen"}, {"port", port}, {"addr", "0.0.0.0"}, {"backlog", backlog}});
}

NodeStatus Node::status() const {
  NodeStatus s;
  const consensus::GroupStatus group = consensus_->status();
  const dmt::SchedulerState& w = layout_->scheduler;
  s.replica = config_.replica;
  s.pid = ::getpid();
  s.server_pid = guard_->running() ? guard_->pid() : -1;
  s.role = consensus::name(group.role);
  s.view = view_counter(group.view);
  s.leader = value(group.leader);
  s.last = value(group.last);
  s.committed = value(group.committed);
  s.applied = value(applied());
  // Clock and hash belong to whoever has the turn: they are a pair only when nobody had it.
  const bool idle = w.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  s.clock = w.clock;
  s.schedule_hash = w.hash;
  s.settled = idle && w.holder.load(std::memory_order_seq_cst) == dmt::kHolderIdle;
  s.outputs_bytes = outputs_->bytes();
  s.outputs_digest = outputs_->digest();
  s.entries = entries_;
  s.connections = proxy_->connections();
  const proxy::ProxyCounters& c = proxy_->counters();
  s.accepted = c.accepted;
  s.refused = c.refused;
  s.reset_slow = c.reset_slow;
  s.reset_leader = c.reset_leader;
  s.bytes_in = c.bytes_in;
  s.bytes_out = c.bytes_out;
  return s;
}

void Node::report_status() {
  const Outcome written =
      write_file(config_.replica_dir() + "/status.json", to_json(status()).dump(2) + "\n");
  if (!written.ok()) spdlog::warn("status.json: {}", std::strerror(written.error().detail));
}

}  // namespace crane::node
