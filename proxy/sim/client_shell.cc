// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/client_shell.h"

#include <algorithm>
#include <utility>

namespace crane::proxy::sim {

ClientShell::ClientShell(const Rules& rules, Kernel& kernel, Process process,
                         ConnectionSlots* slots, consensus::sim::Random& random)
    : rules_(rules),
      kernel_(kernel),
      process_(process),
      slots_(slots),
      random_(random),
      clients_(rules.options, rules.mutant) {
  if (slots != nullptr) clients_.share(*slots);
  clients_.add_port(Kernel::kPort, Kernel::kPort);
  clients_.set_listening(Kernel::kPort, true, false);
  kernel_.started(process);
}

ClientShell::~ClientShell() {
  for (ClientSocket& socket : clients_.surrender_all()) (void)socket.release();
  for (; next_ < actions_.size(); ++next_) {
    auto* const close = std::get_if<client_actions::Close>(&actions_[next_]);
    if (close != nullptr) (void)close->socket.release();
  }
}

bool ClientShell::next() {
  if (next_ == actions_.size()) {
    next_ = 0;
    if (!take_actions()) return false;
  }
  std::visit([this](auto& action) { carry_out(action); }, actions_[next_++]);
  return true;
}

bool ClientShell::take_actions() {
  if (!clients_.take_actions(actions_)) return false;
  if (rules_.releases_early) {
    std::stable_partition(actions_.begin(), actions_.end(), [](const ClientAction& action) {
      return std::holds_alternative<client_actions::Release>(action);
    });
  }
  return true;
}

void ClientShell::carry_out(const client_actions::WatchWriting& a) {
  Watch& watch = watches_.at(a.fd);
  watch.writing = a.on;
  watch.output.reset();
}

// --- sockets -------------------------------------------------------------------------------------

std::vector<int> ClientShell::watched() const {
  std::vector<int> all;
  for (const auto& [fd, watch] : watches_) all.push_back(fd);
  return all;
}

void ClientShell::ring_all() {
  for (auto& [fd, watch] : watches_) watch.input = watch.output = std::nullopt;
}

ClientShell::Turn ClientShell::ring(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return {};
  Watch& watch = found->second;
  const Kernel::Edges edges = kernel_.edges_of(fd);
  const bool reads = watch.input != edges.input;
  const bool writes = watch.writing && edges.takes_output && watch.output != edges.output;
  if (!reads && !writes) return {};
  if (skips()) return {true, false};
  if (reads) {
    watch.input = edges.input;
    clients_.readable(*watch.client, edges.ends);
  } else {
    watch.output = edges.output;
    clients_.writable(*watch.client);
  }
  return {true, true};
}

ClientShell::Turn ClientShell::accept() {
  if (!clients_.has_unclaimed(Kernel::kPort) && !kernel_.waits_for_accept()) return {};
  if (skips()) return {true, false};
  if (ClientSocket socket = clients_.next_unclaimed(Kernel::kPort)) {
    take(std::move(socket));
    return {true, true};
  }
  const int fd = kernel_.accept(process_);
  if (fd < 0) return {};
  take(ClientSocket(fd, kernel_));
  return {true, true};
}

void ClientShell::take(ClientSocket socket) {
  SocketView seen;
  seen.peer.port = static_cast<std::uint16_t>(kernel_.socket_of(socket.fd()).client);
  seen.id = socket.id();
  if (slots_ != nullptr) seen.slot = slots_->claim(seen.id);
  clients_.accepted(Kernel::kPort, std::move(socket), seen);
}

// --- changes of the leader -----------------------------------------------------------------------

void ClientShell::restore(const EchoServer& server, std::uint64_t index) {
  restored_at_ = index;
  for (const auto& [conn, open] : server.connections()) {
    clients_.restore(ConnId{conn}, open.opened, open.progress, {});
    restored_written_[open.opened.socket] = open.progress.written;
  }
}

bool ClientShell::lacks(const SimSocket& socket, std::uint64_t closed_at) const {
  if (closed_at != 0 && restored_at_ && closed_at <= *restored_at_) return true;
  const auto written = restored_written_.find(socket.id);
  return written != restored_written_.end() && written->second > socket.put.size();
}

void ClientShell::close_if_released() {
  if (!kernel_.released(process_)) return;
  clients_.release_sockets();
  kernel_.none_left(process_);
}

void ClientShell::take_over() {
  close_if_released();
  std::vector<ClientSocket> sockets;
  if (slots_ != nullptr) {
    for (const int fd : kernel_.adopt_sockets(process_)) sockets.emplace_back(fd, kernel_);
  }
  clients_.sockets_adopted(std::move(sockets));
  clients_.lead(0, false);
}

}  // namespace crane::proxy::sim
