// SPDX-License-Identifier: Apache-2.0
// Connections that the server opens: every replica knows what its own server has asked for, the
// leader opens it and proposes CONNECTED.  From there on it is a client's connection as any other.
// The same of the names that it asks for (names.h).
#include <cerrno>
#include <utility>

#include "proxy/clients/encode.h"
#include "proxy/clients/server.h"

namespace crane::proxy {

void Proxy::open_names() {
  if (!options_.opens) return;
  names_.use(std::make_unique<Resolver>(base_, options_.resolver, [this](const ResolvedBody& body) {
    on_event_();
    names_.answered(body);
  }));
}

void Proxy::restore_question(std::uint64_t number, const NameRequest& request) {
  names_.asked(number, request);
}

void Proxy::recover_at(std::uint64_t clock) noexcept {
  last_asked_ = kOutboundBit | clock;
  names_.recover_at(clock);
}

void Proxy::asked(const OutputHeader& header, std::span<const std::byte> bytes) {
  NameRequest name;
  if (header.type == OutputType::kResolve) {
    if (read_body(bytes, name)) names_.asked(header.conn, name);
    return;
  }
  Destination to;
  if (!options_.opens || !read_destination(bytes, to)) return;
  last_asked_ = header.conn;
  name_destination(to);
  if (clients_.find(header.conn) != nullptr) return;  // the log was faster
  wait_for_outcome(ConnId{header.conn}, to);
}

void Proxy::name_destination(const Destination& to) {
  destinations_.asked(to, options_.allows(to.request.peer));
}

void Proxy::restore_attempt(ConnId conn, const Destination& to) {
  name_destination(to);
  wait_for_outcome(conn, to);
}

void Proxy::wait_for_outcome(ConnId conn, const Destination& to) {
  Client& client = add_outbound(conn);
  client.opening = Opening::kWanted;
  client.to = to;
  if (leading_) dial(client);
}

Client& Proxy::add_outbound(ConnId conn) {
  Client& client =
      clients_.add(std::make_unique<Client>(std::uint16_t{0}, options_.connection, this));
  client.conn = conn;
  clients_.named(client);
  return client;
}

void Proxy::dial(Client& client) {
  if (!options_.allows(client.to.request.peer)) return answer(client, ECONNREFUSED);
  const bool is_unix = client.to.is_unix();
  Result<ClientSocket> socket =
      is_unix ? open_unix(options_.find_socket(client.to.path)) : open_outbound(client.to.request);
  if (!socket.ok() && is_unix && socket.error().detail == EAGAIN) {
    return client.dial_again(base_, on_dial_again);
  }
  if (!socket.ok()) return answer(client, socket.error().detail);
  client.dial(std::move(socket).value(), base_, on_dialed);
}

void Proxy::dial_all() {
  clients_.for_each([this](Client& client) {
    if (client.opening == Opening::kWanted) dial(client);
  });
}

void Proxy::on_dialed(int, short, void* argument) {
  Client& client = *static_cast<Client*>(argument);
  client.proxy->on_event_();
  client.proxy->answer(client, outcome_of(client.dialed));
}

void Proxy::on_dial_again(int, short, void* argument) {
  Client& client = *static_cast<Client*>(argument);
  client.proxy->on_event_();
  client.end_dial();
  client.proxy->dial(client);
}

void Proxy::answer(Client& client, int error) {
  ClientSocket socket = client.end_dial();
  ConnectedBody body{};
  body.conn = client.conn;
  body.error = error;
  body.slot = kNoTableSlot;
  if (error == 0) {
    if (client.to.is_unix()) {
      body.local.family = AF_UNIX;
    } else {
      body.local = local_of(socket.fd());
    }
    if (shared_) shared_->opened(socket.fd());
    if (shared_ && !client.to.is_unix()) {
      client.id = socket_id(socket.fd());
      if (value(client.id) != 0) client.slot = shared_->table().claim(client.id);
    }
    body.slot = client.slot;
    body.socket = client.id;
  }
  client.opening = Opening::kProposed;
  batch_.add_connected(body);
  if (error != 0) return;
  client.serve_opened(std::move(socket));
  client.readable = true;
  client.watch(base_, on_client, on_writable);
  read_client(client);
}

// CONNECTED, on every replica.
void Proxy::outcome(const ConnectedBody& body) {
  if (!options_.opens) return;
  Client* client = clients_.find(value(body.conn));
  if (client == nullptr) {
    // The own server has closed it, or has yet to ask for it.
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

// This replica is deposed: whoever leads opens what has no outcome in the log.  The socket stays
// open where sockets are shared: CONNECTED may be in the log yet.
void Proxy::forget_attempt(Client& client) {
  client.unwatch();
  client.end_dial();
  if (client.fd() >= 0 && shared_ && !client.to.is_unix()) left_.push_back(client.surrender());
  client.reset(batch_, false);
  client.follow();
  client.ends = false;
  client.opening = Opening::kWanted;
  client.id = SocketId{0};
  client.slot = kNoTableSlot;
}

// This replica is deposed, and no other one can go on with the socket.  The next leader has none,
// so it tells the servers by a RESET.
void Proxy::end_here(Client& client) {
  const QueueChange change(*this, client);
  client.reset(batch_, false);
  client.follow();
}

}  // namespace crane::proxy
