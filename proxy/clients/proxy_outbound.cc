// SPDX-License-Identifier: Apache-2.0
// Connections that the server opens, as Clients requests them, and names that the server asks for
// (names.h).
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "proxy/clients/host_sockets.h"
#include "proxy/clients/proxy.h"

namespace crane::proxy {
namespace {
// When to try a unix socket again whose backlog is full.
constexpr int kDialAgainUs = 20'000;
}  // namespace

void Proxy::answered(const ResolvedBody& body) {
  host_.woke();
  if (names_.answered(body.number)) batch().add(EntryType::kResolved, body);
}

void Proxy::restore_question(std::uint64_t number, const NameRequest& request) {
  names_.asked(number, request);
}

void Proxy::recover_at(std::uint64_t clock) noexcept {
  clients_.recover_at(clock);
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
  name_destination(to);
  clients_.asked(ConnId{header.conn}, to);
  run();
}

void Proxy::name_destination(const Destination& to) {
  destinations_.asked(to, host_.allows(to.request.peer));
}

void Proxy::restore_attempt(ConnId conn, const Destination& to) {
  name_destination(to);
  clients_.wait_for_outcome(conn, to);
  run();
}

void Proxy::carry_out(const client_actions::Dial& action) {
  const Client* client = clients_.find(action.conn);
  if (client == nullptr || !client->dials) return;  // EndDial follows
  const Destination& to = client->to;
  if (!host_.allows(to.request.peer)) {
    return clients_.dialed(action.conn, ECONNREFUSED, {}, {});
  }
  if (to.is_fifo()) return dial_fifo(action.conn, to);
  Result<ClientSocket> socket =
      to.is_unix() ? open_unix(host_.find_socket(to.path)) : open_outbound(to.request);
  if (!socket.ok() && to.is_unix() && socket.error().detail == EAGAIN) {
    Dialing& dialing = begin_dial(action.conn);
    event_assign(&dialing.due, base_, -1, 0, on_dial_again, &dialing);
    const timeval delay{0, kDialAgainUs};
    event_add(&dialing.due, &delay);
    return;
  }
  if (!socket.ok()) return clients_.dialed(action.conn, socket.error().detail, {}, {});
  Dialing& dialing = begin_dial(action.conn);
  dialing.socket = std::move(socket).value();
  event_assign(&dialing.due, base_, dialing.socket.fd(), EV_WRITE, on_dialed, &dialing);
  event_add(&dialing.due, nullptr);
}

void Proxy::carry_out(const client_actions::EndDial& action) { (void)end_dial(action.conn); }

// As open(2), which waits for a writer.
void Proxy::dial_fifo(ConnId conn, const Destination& to) {
  std::erase_if(fifos_, [](const auto& one) { return one.second->is_over(); });
  const Result<int> fifo = open_fifo(host_.find_socket(to.path));
  if (!fifo.ok()) return clients_.dialed(conn, fifo.error().detail, {}, {});
  Dialing& dialing = begin_dial(conn);
  dialing.fifo = fifo.value();
  event_assign(&dialing.due, base_, dialing.fifo, EV_READ, on_fifo, &dialing);
  event_add(&dialing.due, nullptr);
}

Proxy::Dialing& Proxy::begin_dial(ConnId conn) {
  return *(dialing_[conn] = std::make_unique<Dialing>(Dialing{this, conn, {}}));
}

// Returns the socket; empty: there is none yet.
ClientSocket Proxy::end_dial(ConnId conn) {
  const auto found = dialing_.find(conn);
  if (found == dialing_.end()) return {};
  event_del(&found->second->due);
  ClientSocket socket = std::move(found->second->socket);
  if (found->second->fifo >= 0) ::close(found->second->fifo);
  dialing_.erase(found);
  return socket;
}

void Proxy::on_dialed(int, short, void* argument) {
  const Dialing& dialing = *static_cast<Dialing*>(argument);
  Proxy& proxy = *dialing.proxy;
  const ConnId conn = dialing.conn;
  proxy.host_.woke();
  ClientSocket socket = proxy.end_dial(conn);
  const int error = outcome_of(socket);
  SocketView seen;
  if (error == 0 && proxy.clients_.find(conn)->to.is_unix()) {
    if (proxy.shared_) proxy.shared_->opened(socket.fd());
    seen.local.family = AF_UNIX;
  } else if (error == 0) {
    seen = proxy.share_socket(socket);
  }
  proxy.clients_.dialed(conn, error, std::move(socket), seen);
  proxy.run();
}

void Proxy::on_fifo(int, short, void* argument) {
  Dialing& dialing = *static_cast<Dialing*>(argument);
  Proxy& proxy = *dialing.proxy;
  const ConnId conn = dialing.conn;
  proxy.host_.woke();
  const int fifo = std::exchange(dialing.fifo, -1);
  (void)proxy.end_dial(conn);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
    ::close(fifo);
    proxy.clients_.dialed(conn, ENOBUFS, {}, {});
    return proxy.run();
  }
  proxy.fifos_[conn] = std::make_unique<FifoReader>(proxy.base_, fifo, pair[1]);
  SocketView seen;
  seen.local.family = AF_UNIX;
  if (proxy.shared_) proxy.shared_->opened(pair[0]);
  proxy.clients_.dialed(conn, 0, host_socket(pair[0]), seen);
  proxy.run();
}

void Proxy::on_dial_again(int, short, void* argument) {
  const Dialing& dialing = *static_cast<Dialing*>(argument);
  Proxy& proxy = *dialing.proxy;
  const ConnId conn = dialing.conn;
  proxy.host_.woke();
  (void)proxy.end_dial(conn);
  proxy.carry_out(client_actions::Dial{conn});
  proxy.run();
}

}  // namespace crane::proxy
