// SPDX-License-Identifier: Apache-2.0
// Handles the log's entries about clients, on every replica.
#include <algorithm>

#include "proxy/replica/clients/bodies.h"
#include "proxy/replica/clients/clients.h"

namespace crane::proxy {

void Clients::committed(EntryType type, Index index, std::span<const std::byte> body) {
  switch (type) {
    case EntryType::kStart:
      return with_body<StartBody>(body, [this](const auto& b) { started(b); });
    case EntryType::kConnect:
      return with_body<ConnectBody>(body, [&](const auto& b) { connected(index, b); });
    case EntryType::kConnected:
      return with_body<ConnectedBody>(body, [this](const auto& b) { outcome(b); });
    case EntryType::kTaken:
      return taken(body);
    default:
      return committed_of_client(type, body);
  }
}

void Clients::committed_of_client(EntryType type, std::span<const std::byte> body) {
  const bool of_connection = type == EntryType::kData || type == EntryType::kShutdown ||
                             type == EntryType::kReset || type == EntryType::kWindow;
  DataBody about;
  if (!of_connection || !read_body(body, about)) return;
  Client* client = clients_.find(value(connection_of(about)));
  if (client == nullptr) return;
  const QueueChange change(*this, *client);
  WindowBody window;
  if (type == EntryType::kData) {
    client->committed_data(body.size() - sizeof(DataBody));
    if (client->serves() && !std::exchange(client->settles, true)) settling_.push_back(client);
    if (moves_ != nullptr && client->serves()) moves_->committed(*client);
  } else if (type == EntryType::kShutdown) {
    client->committed_shutdown();
    if (moves_ != nullptr && client->serves()) moves_->committed(*client);
  } else if (type == EntryType::kReset) {
    client->committed_reset();
  } else if (read_body(body, window)) {
    client->committed_window(window.total);
  }
}

void Clients::connected(Index index, const ConnectBody& body) {
  if (slots_ != nullptr && mutant_ != ClientMutant::kNotLogged) {
    act(client_actions::SetLogged{body.slot, body.socket});
  }
  if (Client* own = clients_.find(value(index))) {
    own->committed = true;
    return;
  }
  // If the leader has finished the connection, which a replica that catches up learns late, there
  // is nothing to take over.
  if (slots_ != nullptr ? !slots_->put_of(body.slot, body.socket) : body.tcp.mss == 0) return;
  if (slots_ == nullptr && moves_ == nullptr) return;
  restore(ConnId{value(index)}, body, {}, {});
}

void Clients::restore(ConnId conn, const ConnectBody& opened, const ConnectionProgress& progress,
                      const std::string& path) {
  Client& client =
      clients_.add(std::make_unique<Client>(opened.port, options_.connection, actions_));
  client.conn = conn;
  client.id = opened.socket;
  client.slot = opened.slot;
  client.committed = true;
  client.restore(progress);
  if (moves_ != nullptr) set_client_move(client, opened);
  client.move.taken = progress.taken;
  clients_.named(client);
  client.to = {{opened.peer, opened.local}, path};
}

// Connections of an earlier leader end, for the server too.
void Clients::started(const StartBody& body) {
  if (body.resets == Resets::kNone) return;
  clients_.for_each([this, &body](Client& client) {
    if (body.resets == Resets::kThoseThatStay && client.move.tcp.mss != 0) return;
    if (client.opening != Opening::kOver) return;  // the new leader opens it
    const QueueChange change(*this, client);
    client.committed_reset();
  });
}

// Keeps what another host needs to make the client's socket.
void Clients::set_client_move(Client& client, const ConnectBody& body) {
  client.move.tcp = body.tcp;
  client.move.peer = body.peer;
  if (body.tcp.mss != 0) client.set_moves();
}

// TAKEN, on every replica.
void Clients::taken(std::span<const std::byte> body) {
  TakenBody about;
  for (; read_body(body, about); body = body.subspan(sizeof about)) {
    Client* const client = clients_.find(value(about.conn));
    if (client == nullptr) continue;
    if (about.total == kTakenAll) {
      if (!leading_) forget(*client);
      continue;
    }
    client->move.taken = std::max(client->move.taken, about.total);
    if (client->serves()) continue;
    const QueueChange change(*this, *client);
    client->put_by_other(about.total);
  }
}

}  // namespace crane::proxy
