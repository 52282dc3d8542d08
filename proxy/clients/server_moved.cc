// SPDX-License-Identifier: Apache-2.0
// Clients of a virtual address, whose connections move to the next leader's host.
#include <utility>

#include "dmt/base/assert.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/server.h"

namespace crane::proxy {

Outcome Proxy::move_clients_of(const std::string& address) {
  CRANE_ASSERT(!shared_ && !leading_);
  MovedClients::Actions actions;
  actions.woke = on_event_;
  actions.serve = [this](Client& client, ClientSocket socket, std::uint64_t put) {
    serve_moved(client, std::move(socket), put);
  };
  actions.gone = [this](Client& client) {
    client.drop();
    forget(client);
  };
  auto moved = MovedClients::open(base_, address, batch_, std::move(actions));
  if (!moved.ok()) return moved.error();
  moved_ = std::move(moved).value();
  for (const auto& listener : listeners_) moved_->add_port(listener->host_port());
  return Done{};
}

void Proxy::hold_output(bool on) {
  if (!moved_ || !leading_ || on == holds_output_) return;
  holds_output_ = on;
  if (on) return;
  clients_.for_each([this](Client& client) {
    if (client.fd() < 0 || client.queued() == 0) return;
    const std::size_t queued_before = client.queued();
    write_done(client, queued_before, client.flush(batch_));
  });
}

void Proxy::hush() {
  if (moved_ && leading_) moved_->hush(true);
}

// What another host needs to make its socket.
void Proxy::told(Client& client, const ConnectBody& body) {
  client.move.tcp = body.tcp;
  client.move.peer = body.peer;
  if (body.tcp.mss != 0) client.set_moves();
}

// TAKEN, on every replica.
void Proxy::taken(std::span<const std::byte> body) {
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

void Proxy::take_moved(std::uint32_t reign) {
  counters_.last_adopted = counters_.last_reset = 0;
  moved_->lead(reign);
  clients_.for_each([this](Client& client) {
    if (client.opening != Opening::kOver) return;
    const Listener* const listener = listener_of(client.port());
    if (!client.is_reset() && listener != nullptr && moved_->take(client, listener->host_port())) {
      ++counters_.last_adopted;
      return;
    }
    (void)adopt(client, {});
  });
  moved_->go_on();
  counters_.adopted += counters_.last_adopted;
  counters_.reset_leader += counters_.last_reset;
}

void Proxy::serve_moved(Client& client, ClientSocket socket, std::uint64_t put) {
  const Connection::Adopted how = [&] {
    const QueueChange change(*this, client);
    client.put_by_other(put);
    return client.serve_moved(std::move(socket), batch_);
  }();
  if (how == Connection::Adopted::kServed) {
    if (!client.server_closed()) client.watch(base_, on_client, on_writable);
    client.watch_writing(client.queued() > 0);
    client.readable = true;
    moved_->written(client);
    return read_client(client);
  }
  if (how == Connection::Adopted::kReset) {
    ++counters_.last_reset;
    ++counters_.reset_leader;
  }
  if (client.finished()) forget(client);
}

// This replica is deposed; the client hears no more of it.
void Proxy::leave(Client& client) {
  client.unwatch();
  const QueueChange change(*this, client);
  moved_->leave(client);
  client.follow();
}

}  // namespace crane::proxy
