// SPDX-License-Identifier: Apache-2.0
// Changes of the leader.  On the same host the next leader continues with the sockets; for a
// virtual address it makes them again (client_moves.h).  Also connections that the server opens,
// which the leader makes.
#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include "dmt/base/assert.h"
#include "proxy/replica/clients/clients.h"

namespace crane::proxy {

void Clients::lead(std::uint32_t reign, bool resets_all) {
  leading_ = true;
  takes_clients_to_forward_ = false;
  if (slots_ != nullptr) take_over(resets_all);
  if (moves_ != nullptr) take_moved(reign);
  clients_.for_each([](Client& client) {
    if (client.opening == Opening::kWanted) client.dial();
  });
  for (const auto& port : ports_) {
    follow_server(*port);
    update_accepting(*port);
  }
}

void Clients::follow() {
  if (std::exchange(leading_, false)) step_down();
  update_accepting();
}

void Clients::reset_all_unknown() {
  CRANE_ASSERT(leading_);
  counters_.reset_leader += clients_.size();
  clients_.for_each([this](Client& client) { client.reset(batch_, false); });
  for (const auto& port : ports_) {
    for (ClientSocket& socket : std::exchange(port->unclaimed, {})) socket.reset();
  }
  if (moves_ != nullptr) moves_->flush();
}

void Clients::reset_unless_known(ConnId conn) {
  CRANE_ASSERT(leading_);
  if (clients_.find(value(conn)) != nullptr) return;
  ++counters_.last_reset;
  ++counters_.reset_leader;
  Opener lost{conn};
  batch_.add_reset(lost);
}

// --- taking over ---------------------------------------------------------------------------------

void Clients::sockets_adopted(std::vector<ClientSocket> sockets) {
  for (ClientSocket& socket : sockets) left_.push_back(std::move(socket));
}

void Clients::take_over(bool resets_all) {
  closed_.clear();
  counters_.last_adopted = counters_.last_reset = 0;
  std::map<SocketId, ClientSocket> found;  // the oldest first
  for (ClientSocket& socket : left_) {
    const SocketId id = socket.id();
    found.emplace(id, std::move(socket));
  }
  left_.clear();
  if (resets_all) {
    for (auto& [id, socket] : found) socket.reset();
    found.clear();
  }
  const std::vector<SocketId> logged = slots_->logged_sockets();
  std::vector<std::uint32_t> kept;
  clients_.for_each([&](Client& client) {
    if (client.opening != Opening::kOver) return;
    ClientSocket socket;
    if (const auto its = found.find(client.id); its != found.end()) {
      socket = std::move(its->second);
      found.erase(its);
    }
    const std::uint32_t slot = client.slot;
    if (adopt(client, std::move(socket))) kept.push_back(slot);
  });
  act(client_actions::KeepOnly{std::move(kept)});
  for (auto& [id, socket] : found) {
    take_unclaimed(std::move(socket), std::binary_search(logged.begin(), logged.end(), id));
  }
  read_again_ = true;  // they have waited: their input of that time causes no event
  counters_.adopted += counters_.last_adopted;
  counters_.reset_leader += counters_.last_reset;
}

// False: the connection does not continue.
bool Clients::adopt(Client& client, ClientSocket socket) {
  const Connection::Adopted how = [&] {
    const QueueChange change(*this, client);
    return client.serve(std::move(socket), batch_);
  }();
  if (how == Connection::Adopted::kServed) {
    ++counters_.last_adopted;
    client.readable = true;
    client.watch();
    client.watch_writing(client.queued() > 0);
    publish_put(client);
    return true;
  }
  if (how == Connection::Adopted::kReset) ++counters_.last_reset;
  client.slot = kNoTableSlot;
  if (client.finished()) forget(client);
  return false;
}

// An earlier leader had accepted the socket, and its CONNECT is not in the log.  Usually nothing
// was read from it.  If something was, or if it is `logged`, this replica has recovered after that
// and does not know what the server has answered.
void Clients::take_unclaimed(ClientSocket socket, bool logged) {
  if (mutant_ == ClientMutant::kLoseUnclaimed) return;
  const std::optional<SocketState> state = socket.state(false);
  const std::uint16_t at = socket.local_port();
  const auto port = std::find_if(ports_.begin(), ports_.end(),
                                 [at](const auto& p) { return p->host_port == at; });
  const bool fresh =
      !logged && state && state->taken == 0 && state->put == 0 && !state->output_ended;
  if (fresh && port != ports_.end()) {
    ++counters_.last_adopted;
    (*port)->unclaimed.push_back(std::move(socket));
    return;
  }
  // A leader has opened it, and its outcome is not in the log: the server does not know the socket,
  // and the connection is opened again.  The answer to our SYN counts as a byte.
  const bool attempt = state && state->taken == 0 && state->put == 1 && !state->output_ended;
  if (!attempt || port != ports_.end()) ++counters_.last_reset;
  socket.reset();
}

// --- stepping down -------------------------------------------------------------------------------

void Clients::step_down() {
  if (moves_ != nullptr) moves_->stop();
  holds_output_ = false;
  batch_.clear();
  settling_.clear();
  read_again_ = false;
  for (const auto& port : ports_) {
    port->unproposed = 0;
    port->unadmitted.clear();
    port->full = false;
    for (ClientSocket& socket : std::exchange(port->unclaimed, {})) {
      left_.push_back(std::move(socket));
    }
  }
  clients_.for_each([this](Client& client) { step_down(client); });
}

void Clients::step_down(Client& client) {
  client.settles = false;
  client.unwatch();  // CLIENT-2
  if (client.opening != Opening::kOver) return forget_attempt(client);
  if (client.moves() && client.committed) return act(client_actions::CloseSilently{&client});
  if (slots_ == nullptr) {
    ++counters_.reset_leader;
    client.reset(batch_, false);
    return forget(client);
  }
  if (!client.committed) {
    left_.push_back(client.surrender());
    return forget(client);
  }
  client.to.is_unix() ? end_here(client) : client.follow();
  client.look_at = 0;
  if (client.server_closed()) closed_.push_back(value(client.conn));
}

void Clients::release_sockets() {
  clients_.for_each([](Client& client) { client.release_sockets(); });
  left_.clear();
}

std::vector<ClientSocket> Clients::surrender_all() {
  std::vector<ClientSocket> all = std::exchange(left_, {});
  clients_.for_each([&all](Client& client) { all.push_back(client.surrender()); });
  for (const auto& port : ports_) {
    for (ClientSocket& socket : std::exchange(port->unclaimed, {})) {
      all.push_back(std::move(socket));
    }
  }
  for (ClientAction& action : std::exchange(actions_, {})) {
    if (auto* close = std::get_if<client_actions::Close>(&action)) {
      all.push_back(std::move(close->socket));
    }
  }
  std::erase_if(all, [](const ClientSocket& socket) { return !socket; });
  return all;
}

// --- clients of a virtual address ----------------------------------------------------------------

void Clients::take_moved(std::uint32_t reign) {
  counters_.last_adopted = counters_.last_reset = 0;
  moves_->lead(reign);
  clients_.for_each([this](Client& client) {
    if (client.opening != Opening::kOver) return;
    const ServerPort* const port = port_of(client.port());
    if (!client.is_reset() && port != nullptr && moves_->take(client, port->host_port)) {
      ++counters_.last_adopted;
      return;
    }
    (void)adopt(client, {});
  });
  moves_->go_on();
  counters_.adopted += counters_.last_adopted;
  counters_.reset_leader += counters_.last_reset;
}

void Clients::hold_output(bool on) {
  if (moves_ == nullptr || !leading_ || on == holds_output_) return;
  holds_output_ = on;
  if (on) return;
  clients_.for_each([this](Client& client) {
    if (client.fd() < 0 || client.queued() == 0) return;
    const std::size_t queued_before = client.queued();
    write_done(client, queued_before, client.flush(batch_));
  });
}

void Clients::serve_moved(Client& client, ClientSocket socket, std::uint64_t put) {
  const Connection::Adopted how = [&] {
    const QueueChange change(*this, client);
    client.put_by_other(put);
    return client.serve_moved(std::move(socket), batch_);
  }();
  if (how == Connection::Adopted::kServed) {
    if (!client.server_closed()) client.watch();
    client.watch_writing(client.queued() > 0);
    client.readable = true;
    moves_->written(client);
    return read_client(client);
  }
  if (how == Connection::Adopted::kReset) {
    ++counters_.last_reset;
    ++counters_.reset_leader;
  }
  if (client.finished()) forget(client);
}

void Clients::gone(Client& client) {
  client.drop();
  forget(client);
}

void Clients::left(Client& client, std::uint64_t taken_bytes, std::span<const std::byte> lacks) {
  const QueueChange change(*this, client);
  client.take_back(lacks);
  client.move.taken = std::max(client.move.taken, taken_bytes);
  client.move.all_logged = true;
  client.follow();
}

// --- connections that the server opens -----------------------------------------------------------

void Clients::asked(ConnId conn, const Destination& to) {
  last_asked_ = value(conn);
  if (clients_.find(value(conn)) != nullptr) return;  // the log was faster
  wait_for_outcome(conn, to);
}

void Clients::wait_for_outcome(ConnId conn, const Destination& to) {
  Client& client = add_outbound(conn);
  client.opening = Opening::kWanted;
  client.to = to;
  if (leading_) client.dial();
}

Client& Clients::add_outbound(ConnId conn) {
  Client& client =
      clients_.add(std::make_unique<Client>(std::uint16_t{0}, options_.connection, actions_));
  client.conn = conn;
  clients_.named(client);
  return client;
}

void Clients::dialed(ConnId conn, int error, ClientSocket socket, const SocketView& seen) {
  Client* const client = clients_.find(value(conn));
  if (client == nullptr || !std::exchange(client->dials, false)) return;
  ConnectedBody body{};
  body.conn = conn;
  body.error = error;
  if (error == 0) {
    body.local = seen.local;
    client->id = seen.id;
    client->slot = seen.slot;
  }
  body.slot = client->slot;
  body.socket = client->id;
  client->opening = Opening::kProposed;
  batch_.add(EntryType::kConnected, body);
  if (error != 0) return;
  client->serve_opened(std::move(socket));
  client->readable = true;
  client->watch();
  read_client(*client);
}

// CONNECTED, on every replica.
void Clients::outcome(const ConnectedBody& body) {
  if (!options_.opens) return;
  Client* client = clients_.find(value(body.conn));
  if (client == nullptr) {
    // This replica's server has closed it, or has yet to request it.
    if (value(body.conn) <= last_asked_) return;
    client = &add_outbound(body.conn);
  }
  client->opening = Opening::kOver;
  client->committed = true;
  if (client->serves()) return;
  client->end_dial();
  client->id = body.socket;
  client->slot = body.slot;
}

// This replica is deposed: the next leader opens the connections that have no outcome in the log.
// If sockets are shared, the socket stays open, because CONNECTED may still be committed.
void Clients::forget_attempt(Client& client) {
  client.end_dial();
  if (client.fd() >= 0 && slots_ != nullptr && !client.to.is_unix()) {
    left_.push_back(client.surrender());
  }
  client.reset(batch_, false);
  client.follow();
  client.ends = false;
  client.opening = Opening::kWanted;
  client.id = SocketId{0};
  client.slot = kNoTableSlot;
}

// This replica is deposed, and no other one can continue with the socket.  The next leader has
// none, so it informs the servers by a RESET.
void Clients::end_here(Client& client) {
  const QueueChange change(*this, client);
  client.reset(batch_, false);
  client.follow();
}

}  // namespace crane::proxy
