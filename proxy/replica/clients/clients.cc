// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/clients/clients.h"

#include <algorithm>

#include "dmt/base/assert.h"

namespace crane::proxy {

// --- ports ---------------------------------------------------------------------------------------

bool ServerPort::has_room(const BacklogSpace& space) {
  while (!unadmitted.empty() && unadmitted.front() <= space.applied) unadmitted.pop_front();
  return unproposed + unadmitted.size() < space.connections;
}

ServerPort* Clients::port_of(std::uint16_t port) const noexcept {
  const auto found =
      std::find_if(ports_.begin(), ports_.end(), [port](const auto& p) { return p->port == port; });
  return found == ports_.end() ? nullptr : found->get();
}

ServerPort& Clients::own_port(std::uint16_t port) {
  if (ServerPort* known = port_of(port)) return *known;
  return *ports_.emplace_back(std::make_unique<ServerPort>(port));
}

void Clients::add_port(std::uint16_t port, std::uint16_t host_port) {
  ServerPort& own = own_port(port);
  own.host_port = host_port;
  if (refuses_) act(client_actions::Listen{port, false});
  if (own.server_listens) follow_server(own);  // an earlier leader has closed it
  update_accepting(own);
}

void Clients::set_listening(std::uint16_t port, bool listening, bool restarts) {
  if (!listening && port_of(port) == nullptr) return;
  ServerPort& own = own_port(port);
  own.server_listens = listening;
  own.restarts = restarts;
  follow_server(own);
  update_accepting(own);
}

// LISTEN-2.  A follower on the leader's host may be late; it closes nothing.
void Clients::follow_server(ServerPort& port) {
  if (port.host_port == 0 || refuses_) return;
  if (!port.server_listens) {
    if (leading_ && !port.restarts) act(client_actions::Listen{port.port, false});
  } else if (leading_ || !options_.shares_listeners) {
    act(client_actions::Listen{port.port, true});
  }
}

void Clients::update_accepting(ServerPort& port) {
  const bool takes = leading_ ? !paused_ : takes_clients_to_forward_;
  const bool on = takes && port.host_port != 0 && !no_descriptors_ && port.server_listens &&
                  !refuses_ && !port.full;
  if (on != std::exchange(port.accepting, on)) act(client_actions::Accept{port.port, on});
}

void Clients::update_accepting() {
  for (const auto& port : ports_) update_accepting(*port);
}

void Clients::refuse(bool on) {
  if (on == refuses_) return;
  refuses_ = on;
  if (on && leading_) reset_all();
  silence(on);
  for (const auto& port : ports_) {
    if (!on) follow_server(*port);
    update_accepting(*port);
    if (on) act(client_actions::Listen{port->port, false});
  }
}

void Clients::pause_accepting(bool on) {
  no_descriptors_ = on;
  update_accepting();
}

void Clients::take_clients_to_forward(bool on) {
  if (on == takes_clients_to_forward_ || leading_) return;
  takes_clients_to_forward_ = on;
  update_accepting();
}

bool Clients::accepts(std::uint16_t port) const noexcept {
  const ServerPort* own = port_of(port);
  return own != nullptr && own->accepting;
}

bool Clients::may_take(std::uint16_t port, const BacklogSpace& space) {
  ServerPort& own = own_port(port);
  if (own.has_room(space)) return true;
  own.full = true;
  update_accepting(own);
  return false;
}

void Clients::look(std::uint16_t port, const BacklogSpace& space) {
  ServerPort& own = own_port(port);
  if (!own.full || !own.has_room(space)) return;
  own.full = false;
  update_accepting(own);
}

bool Clients::is_full(std::uint16_t port) const noexcept {
  const ServerPort* own = port_of(port);
  return own != nullptr && own->full;
}

bool Clients::waits_for_room() const noexcept {
  return leading_ &&
         std::any_of(ports_.begin(), ports_.end(), [](const auto& p) { return p->full; });
}

ClientSocket Clients::next_unclaimed(std::uint16_t port) {
  ServerPort& own = own_port(port);
  if (own.unclaimed.empty()) return {};
  ClientSocket first = std::move(own.unclaimed.front());
  own.unclaimed.pop_front();
  return first;
}

bool Clients::has_unclaimed(std::uint16_t port) const noexcept {
  const ServerPort* own = port_of(port);
  return own != nullptr && !own->unclaimed.empty();
}

void Clients::accepted(std::uint16_t port, ClientSocket socket, const SocketView& seen) {
  CRANE_ASSERT(leading_);
  ServerPort& own = own_port(port);
  Client& client = clients_.add(
      std::make_unique<Client>(std::move(socket), port, options_.connection, actions_));
  client.accepted_at = &own;
  client.id = seen.id;
  client.slot = seen.slot;
  ConnectBody body = connect_body(port, seen.peer, seen.local);
  body.slot = client.slot;
  body.socket = client.id;
  body.tcp = seen.tcp;
  if (moves_ != nullptr) {
    client.move.host_port = own.host_port;
    set_client_move(client, body);
  }
  ++own.unproposed;
  client.watch();
  ++counters_.accepted;
  batch_.add_connect(client, body);
  // The request usually came with the connection: it joins the same batch.
  read_client(client);
}

// --- clients -> entries --------------------------------------------------------------------------

void Clients::readable(Client& client, bool ends) {
  client.readable = true;
  client.ends = client.ends || ends;
  read_client(client);
}

void Clients::read_client(Client& client) {
  if (!client.readable || !client.watched || paused_) return;
  if (batch_.bytes() >= kBatchBytes) {
    read_again_ = true;
    return;
  }
  const std::size_t before = batch_.bytes();
  const std::size_t queued_before = client.queued();
  const Connection::Read got = client.read(batch_);
  counters_.bytes_in += batch_.bytes() - before;
  // A FIN that arrived with the bytes causes no second event.
  const bool ends = client.ends && mutant_ != ClientMutant::kForgetEnd;
  const bool drained = got == Connection::Read::kDrained && !ends;
  client.readable = !drained && got != Connection::Read::kEnded;
  write_done(client, queued_before, client.queued() == 0);  // the socket may have broken
}

void Clients::named(Client& client) {
  clients_.named(client);
  --client.accepted_at->unproposed;
  client.accepted_at->unadmitted.push_back(value(client.conn));
}

void Clients::resume_reading() {
  if (moves_ != nullptr) moves_->resume_reading();
  for (std::size_t i = 0; i < settling_.size(); ++i) {
    Client& client = *settling_[i];
    client.settles = false;
    client.drop_committed();
    read_client(client);
  }
  settling_.clear();
  if (!std::exchange(read_again_, false)) return;
  clients_.for_each([this](Client& client) { read_client(client); });
}

// Clients that wait in the kernel to be accepted have no timers in the server yet.
bool Clients::read_all(std::uint64_t outage) {
  CRANE_ASSERT(leading_);
  bool all = true;
  clients_.for_each([this, outage, &all](Client& client) {
    if (client.read_for == outage || !client.watched) return;
    if (paused_ || batch_.bytes() >= kBatchBytes) {
      all = false;
      return;
    }
    client.read_for = outage;
    client.readable = true;  // its event may not have come yet
    read_client(client);
  });
  return all;
}

void Clients::pause(bool paused) {
  if (paused == paused_) return;
  paused_ = paused;
  update_accepting();
  if (!paused_) clients_.for_each([this](Client& client) { read_client(client); });
}

// --- the list ------------------------------------------------------------------------------------

void Clients::forget(Client& client) {
  queued_ -= client.queued();
  if (leading_ && slots_ != nullptr) act(client_actions::Release{client.slot});  // TABLE-1
  if (moves_ != nullptr) moves_->ended(client);
  client.end_dial();
  client.unwatch();
  if (client.fd() >= 0) client.allow_close(client.surrender());
  if (client.settles) std::erase(settling_, &client);
  clients_.forget(client);
}

void Clients::prune() {
  if (leading_ || slots_ == nullptr) return;
  std::erase_if(closed_, [this](std::uint64_t conn) {
    Client* client = clients_.find(conn);
    if (client == nullptr) return true;
    if (slots_->put_of(client->slot, client->id)) return false;
    forget(*client);
    return true;
  });
}

}  // namespace crane::proxy
