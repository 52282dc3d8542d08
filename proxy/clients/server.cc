// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "dmt/base/assert.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/tuning.h"

namespace crane::proxy {

struct Proxy::Listener {
  Proxy* proxy;
  std::uint16_t port;
  int fd;  // -1: the server listens, the socket has not come yet
  int backlog = 0;
  bool server_listens = false;
  bool accepting = false;      // the event is armed
  bool full = false;           // the server's backlog is: who comes waits in the kernel's queue
  std::size_t unproposed = 0;  // clients whose CONNECT has no place in the log yet
  std::deque<std::uint64_t> unadmitted;  // places of CONNECTs that the own server may not have
  VirtualAddress local{};                // what it is bound to, when not the wildcard
  event accept_event;
};

struct Proxy::Client final : Connection {
  Client(int socket, std::uint16_t server_port, const ConnectionOptions& options, Proxy* owner)
      : Connection(socket, server_port, options), proxy(owner) {}
  void closing() noexcept override {
    proxy->watch_reading(*this, false);
    proxy->watch_writing(*this, false);
  }

  Proxy* proxy;
  Listener* listener = nullptr;
  std::size_t place = 0;  // in clients_
  bool reading = false;   // the read event is armed
  bool writing = false;
  event read_event;
  event write_event;
};

Proxy::Proxy(event_base* base, const ProxyOptions& options, Batch::ProposeFn propose,
             std::function<void()> on_event)
    : base_(base),
      options_(options),
      on_event_(std::move(on_event)),
      batch_(std::move(propose), [this](Opener& opener) { opened(opener); }) {}

Proxy::~Proxy() {
  takes_strangers_ = false;  // the loop forgets all listeners
  lead(false);
  for (const auto& listener : listeners_) {
    if (listener->fd >= 0) ::close(listener->fd);
  }
}

// --- listeners -----------------------------------------------------------------------------------

void Proxy::add_listener(std::uint16_t port, int fd, int backlog) {
  const auto found = std::find_if(listeners_.begin(), listeners_.end(),
                                  [&](const auto& l) { return l->port == port; });
  Listener* listener = nullptr;
  if (found != listeners_.end()) {
    listener = found->get();
    if (listener->fd >= 0) {
      ::close(fd);
      return;
    }
  } else {
    listeners_.push_back(std::make_unique<Listener>());
    listener = listeners_.back().get();
    listener->proxy = this;
    listener->port = port;
  }
  listener->fd = fd;
  listener->backlog = backlog;
  // Inherited by what is accepted.
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  evutil_make_socket_nonblocking(fd);
  event_assign(&listener->accept_event, base_, fd, EV_READ | EV_PERSIST, on_accept, listener);
  if (refuses_) ::shutdown(fd, SHUT_RDWR);
  update_accepting(*listener);
}

bool Proxy::has_listener(std::uint16_t port) const noexcept {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [&](const auto& l) { return l->port == port && l->fd >= 0; });
}

void Proxy::for_each_listener(const std::function<void(std::uint16_t, int)>& visit) const {
  for (const auto& listener : listeners_) {
    if (listener->fd >= 0) visit(listener->port, listener->fd);
  }
}

void Proxy::set_listening(std::uint16_t port, bool listening) {
  for (const auto& listener : listeners_) {
    if (listener->port != port) continue;
    listener->server_listens = listening;
    update_accepting(*listener);
    return;
  }
  if (!listening) return;
  listeners_.push_back(std::make_unique<Listener>());
  listeners_.back()->proxy = this;
  listeners_.back()->port = port;
  listeners_.back()->fd = -1;
  listeners_.back()->server_listens = true;
}

void Proxy::update_accepting(Listener& listener) {
  if (listener.fd < 0) return;
  const bool takes = leading_ ? !paused_ && !out_of_descriptors_ : takes_strangers_;
  const bool want = takes && listener.server_listens && !refuses_ && !listener.full;
  if (want == listener.accepting) return;
  listener.accepting = want;
  if (want) {
    event_add(&listener.accept_event, nullptr);
  } else {
    event_del(&listener.accept_event);
  }
}

// A listening socket that is shut down is closed for everybody, and can listen again.
void Proxy::refuse(bool on) {
  if (on == refuses_) return;
  refuses_ = on;
  if (on && leading_) reset_all();
  for (const auto& listener : listeners_) {
    if (listener->fd < 0) continue;
    if (on) {
      update_accepting(*listener);
      ::shutdown(listener->fd, SHUT_RDWR);
      continue;
    }
    if (::listen(listener->fd, listener->backlog) != 0) {
      spdlog::error("cannot listen on the server's port {} again: {}; its clients are refused",
                    listener->port, std::strerror(errno));
    }
    update_accepting(*listener);
  }
}

void Proxy::on_accept(int, short, void* argument) {
  Listener& listener = *static_cast<Listener*>(argument);
  listener.proxy->on_event_();
  listener.proxy->accept_some(listener);
}

// Conservative: what is admitted meanwhile is counted twice, so that no CONNECT finds a full queue.
bool Proxy::has_room(Listener& listener) {
  if (!room_) return true;
  const Room room = room_(listener.port);
  std::deque<std::uint64_t>& places = listener.unadmitted;
  while (!places.empty() && places.front() <= room.applied) places.pop_front();
  return listener.unproposed + places.size() < room.connections;
}

bool Proxy::waits_for_room() const noexcept {
  return leading_ &&
         std::any_of(listeners_.begin(), listeners_.end(), [](const auto& l) { return l->full; });
}

void Proxy::look_for_room() {
  for (const auto& listener : listeners_) {
    if (!listener->full || !has_room(*listener)) continue;
    listener->full = false;
    update_accepting(*listener);
  }
}

void Proxy::accept_some(Listener& listener) {
  for (int i = 0; i < kAcceptsPerEvent && listener.accepting; ++i) {
    if (leading_ && !has_room(listener)) {
      listener.full = true;
      update_accepting(listener);
      return;
    }
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int fd = ::accept4(listener.fd, reinterpret_cast<sockaddr*>(&peer), &size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && !leading_) {
      strangers_(fd, listener.port,
                 text(virtual_address(reinterpret_cast<sockaddr*>(&peer), size)));
      continue;
    }
    if (fd >= 0) {
      take_client(listener, fd, virtual_address(reinterpret_cast<sockaddr*>(&peer), size));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      spdlog::warn("accept on port {}: {}; waiting for a client to leave", listener.port,
                   std::strerror(errno));
      out_of_descriptors_ = !clients_.empty();
      for (const auto& l : listeners_) update_accepting(*l);
      return;
    }
    // ECONNABORTED and network errors of one client concern that client only.
  }
}

void Proxy::take_client(Listener& listener, int fd, const VirtualAddress& peer) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  VirtualAddress local{};
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) == 0) {
    local = virtual_address(reinterpret_cast<sockaddr*>(&bound), size);
  }
  clients_.push_back(std::make_unique<Client>(fd, listener.port, options_.connection, this));
  Client& client = *clients_.back();
  client.place = clients_.size() - 1;
  client.listener = &listener;
  ++listener.unproposed;
  event_assign(&client.read_event, base_, fd, EV_READ | EV_PERSIST, on_client, &client);
  event_assign(&client.write_event, base_, fd, EV_WRITE | EV_PERSIST, on_writable, &client);
  ++counters_.accepted;
  batch_.add_connect(client, connect_body(listener.port, peer, local));
  watch_reading(client, true);
  // The request usually came with the connection: it joins the same batch.
  read_client(client);
}

// --- clients -> entries --------------------------------------------------------------------------

void Proxy::on_client(int, short, void* argument) {
  Client& client = *static_cast<Client*>(argument);
  client.proxy->on_event_();
  client.proxy->read_client(client);
}

void Proxy::read_client(Client& client) {
  if (paused_) {
    watch_reading(client, false);
    return;
  }
  if (batch_.bytes() >= kBatchBytes) return;  // its event stays armed
  const std::size_t before = batch_.bytes();
  const std::size_t queued_before = client.queued();
  const Connection::Read got = client.read(batch_);
  counters_.bytes_in += batch_.bytes() - before;
  if (got == Connection::Read::kFull || got == Connection::Read::kEnded) {
    watch_reading(client, false);
  }
  write_done(client, queued_before, client.queued() == 0);  // the socket may have broken
}

void Proxy::opened(Opener& opener) {
  Client& client = static_cast<Client&>(opener);
  by_conn_[value(client.conn)] = &client;  // CLIENT-1
  --client.listener->unproposed;
  client.listener->unadmitted.push_back(value(client.conn));
}

void Proxy::pause(bool paused) {
  if (paused == paused_) return;
  paused_ = paused;
  for (const auto& listener : listeners_) update_accepting(*listener);
  if (paused_) return;
  for (const auto& client : clients_) {
    if (!client->input_ended() && client->window_open()) watch_reading(*client, true);
  }
}

void Proxy::watch_reading(Client& client, bool on) {
  if (on == client.reading || (on && client.fd() < 0)) return;
  client.reading = on;
  if (on) {
    event_add(&client.read_event, nullptr);
  } else {
    event_del(&client.read_event);
  }
}

void Proxy::watch_writing(Client& client, bool on) {
  if (on == client.writing || (on && client.fd() < 0)) return;
  client.writing = on;
  if (on) {
    event_add(&client.write_event, nullptr);
  } else {
    event_del(&client.write_event);
  }
}

// --- records -> clients --------------------------------------------------------------------------

Proxy::Client* Proxy::find(std::uint64_t conn) noexcept {
  const auto found = by_conn_.find(conn);
  return found == by_conn_.end() ? nullptr : found->second;
}

void Proxy::output(const OutputHeader& header, std::span<const std::byte> bytes) {
  if (header.type == OutputType::kListen || header.type == OutputType::kUnlisten) {
    set_listening(static_cast<std::uint16_t>(header.conn), header.type == OutputType::kListen);
    return;
  }
  Client* client = find(header.conn);
  if (client == nullptr) return;
  const std::size_t queued_before = client->queued();
  bool done = true;
  switch (header.type) {
    case OutputType::kBytes:
      counters_.bytes_out += bytes.size();
      done = client->write(bytes, batch_);
      break;
    case OutputType::kShutdown:
      done = client->shut_down(batch_);
      break;
    case OutputType::kClose:
      watch_reading(*client, false);
      done = client->close(header.argument != 0, batch_);
      break;
    case OutputType::kRefused:
      ++counters_.refused;
      watch_reading(*client, false);
      done = client->close(true, batch_);
      break;
    case OutputType::kConsumed:
      client->consumed(header.argument);
      if (!paused_ && !client->input_ended() && client->window_open()) {
        watch_reading(*client, true);
      }
      return;
    default:
      return;
  }
  write_done(*client, queued_before, done);
}

void Proxy::on_writable(int, short, void* argument) {
  Client& client = *static_cast<Client*>(argument);
  client.proxy->on_event_();
  const std::size_t queued_before = client.queued();
  const bool done = client.flush(client.proxy->batch_);
  client.proxy->write_done(client, queued_before, done);
}

void Proxy::write_done(Client& client, std::size_t queued_before, bool done) {
  queued_ += client.queued();
  queued_ -= queued_before;
  if (client.fd() < 0) {
    if (client.finished()) forget(client);
    return;
  }
  watch_writing(client, !done);
  if (queued_ > options_.queued_bytes_max) reset_slowest();
}

void Proxy::reset_slowest() {
  const auto slowest =
      std::max_element(clients_.begin(), clients_.end(),
                       [](const auto& a, const auto& b) { return a->queued() < b->queued(); });
  CRANE_ASSERT(slowest != clients_.end());
  Client& client = **slowest;
  spdlog::warn("a client that takes too little of its output was reset: {} bytes waited",
               client.queued());
  ++counters_.reset_slow;
  const std::size_t queued_before = client.queued();
  client.reset(batch_, true);
  write_done(client, queued_before, true);
}

// The lead is not lost yet: the server's sides go by RESETs, if they can be proposed at all.
void Proxy::reset_all() {
  for (std::size_t i = clients_.size(); i-- > 0;) {
    Client& client = *clients_[i];
    if (client.fd() < 0) continue;
    ++counters_.reset_leader;
    const std::size_t queued_before = client.queued();
    client.reset(batch_, true);
    write_done(client, queued_before, true);
  }
}

void Proxy::forget(Client& client) {
  by_conn_.erase(value(client.conn));
  const std::size_t place = client.place;
  std::swap(clients_[place], clients_.back());
  clients_[place]->place = place;
  clients_.pop_back();
  if (out_of_descriptors_) {
    out_of_descriptors_ = false;
    for (const auto& listener : listeners_) update_accepting(*listener);
  }
}

// --- leadership ----------------------------------------------------------------------------------

void Proxy::take_strangers(bool on) {
  if (on == takes_strangers_ || leading_) return;
  CRANE_ASSERT(!on || strangers_);
  takes_strangers_ = on;
  for (const auto& listener : listeners_) update_accepting(*listener);
}

void Proxy::lead(bool leading) {
  leading_ = leading;
  if (leading_) takes_strangers_ = false;
  for (const auto& listener : listeners_) update_accepting(*listener);
  if (leading_) return;
  batch_.clear();
  counters_.reset_leader += clients_.size();
  for (const auto& client : clients_) {
    client->reset(batch_, false);
  }
  by_conn_.clear();
  clients_.clear();  // CLIENT-2
  for (const auto& listener : listeners_) {
    listener->unproposed = 0;
    listener->unadmitted.clear();
    listener->full = false;
  }
  queued_ = 0;
  out_of_descriptors_ = false;
}

}  // namespace crane::proxy
