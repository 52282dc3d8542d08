// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "dmt/base/assert.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/tuning.h"

namespace crane::proxy {
Proxy::Proxy(event_base* base, const ProxyOptions& options, Batch::ProposeFn propose,
             std::function<void()> on_event)
    : base_(base),
      options_(options),
      on_event_(std::move(on_event)),
      batch_(std::move(propose), [this](Opener& opener) { opened(opener); }),
      pause_(base, "clients",
             [this] {
               on_event_();
               for (const auto& listener : listeners_) update_accepting(*listener);
             }),
      names_([this](const ResolvedBody& body) { batch_.add_resolved(body); }) {
  open_names();
}

Proxy::~Proxy() {
  takes_strangers_ = false;  // the loop forgets all listeners
  lead(false);
  if (shared_) {
    if (event_initialized(&keeper_event_)) event_del(&keeper_event_);
    tend();
    bool any = !left_.empty();
    clients_.for_each([&any](Client& client) { any |= client.surrender().release() >= 0; });
    for (ClientSocket& socket : left_) (void)socket.release();  // KEEPER-1
    if (!any) shared_->none_left();
  }
}

// --- listeners -----------------------------------------------------------------------------------

Listener* Proxy::listener_of(std::uint16_t port) const noexcept {
  const auto found = std::find_if(listeners_.begin(), listeners_.end(),
                                  [port](const auto& l) { return l->port == port; });
  return found == listeners_.end() ? nullptr : found->get();
}

void Proxy::add_listener(std::uint16_t port, int fd, int backlog) {
  Listener* listener = listener_of(port);
  if (listener != nullptr && listener->fd() >= 0) {
    ::close(fd);
    return;
  }
  if (listener == nullptr) {
    listeners_.push_back(std::make_unique<Listener>(*this, port));
    listener = listeners_.back().get();
  }
  listener->open(fd, backlog, base_, on_accept);
  if (shared_) shared_->add_port(listener->host_port());
  if (moved_) moved_->add_port(listener->host_port());
  if (refuses_) listener->close_for_all();
  if (listener->server_listens) follow_server(*listener);  // an earlier leader has closed it
  update_accepting(*listener);
}

bool Proxy::has_listener(std::uint16_t port) const noexcept {
  const Listener* listener = listener_of(port);
  return listener != nullptr && listener->fd() >= 0;
}

bool Proxy::takes_clients(std::uint16_t port) const noexcept {
  const Listener* listener = listener_of(port);
  return listener != nullptr && listener->listens();
}

void Proxy::for_each_listener(const std::function<void(std::uint16_t, int)>& visit) const {
  for (const auto& listener : listeners_) {
    if (listener->fd() >= 0) visit(listener->port, listener->fd());
  }
}

void Proxy::set_listening(std::uint16_t port, bool listening, bool restarts) {
  Listener* listener = listener_of(port);
  if (listener == nullptr) {
    if (!listening) return;
    listeners_.push_back(std::make_unique<Listener>(*this, port));
    listener = listeners_.back().get();
  }
  listener->server_listens = listening;
  listener->restarts = restarts;
  follow_server(*listener);
  update_accepting(*listener);
}

// LISTEN-2.  A follower on the leader's host may be behind the leader, and closes nothing.
void Proxy::follow_server(Listener& listener) {
  if (listener.fd() < 0 || refuses_) return;
  if (!listener.server_listens) {
    if (leading_ && !listener.restarts) listener.close_for_all();
  } else if (leading_ || !options_.shares_listeners) {
    if (listener.listens() || listener.open_again()) return;
    spdlog::error("cannot listen on the server's port {}: {}; its clients are refused",
                  listener.port, std::strerror(errno));
  }
}

void Proxy::update_accepting(Listener& listener) {
  const bool takes = leading_ ? !paused_ : takes_strangers_;
  listener.accept_clients(takes && !pause_.on() && listener.server_listens && !refuses_ &&
                          !listener.full);
}

void Proxy::refuse(bool on) {
  if (on == refuses_) return;
  refuses_ = on;
  if (on && leading_) reset_all();
  if (moved_ && leading_) moved_->hush(on);
  for (const auto& listener : listeners_) {
    if (on) {
      update_accepting(*listener);
      listener->close_for_all();
      continue;
    }
    follow_server(*listener);
    update_accepting(*listener);
  }
}

void Proxy::on_accept(int, short, void* argument) {
  Listener& listener = *static_cast<Listener*>(argument);
  listener.proxy->on_event_();
  listener.proxy->accept_some(listener);
}

bool Proxy::has_room(Listener& listener) {
  return !room_ || listener.has_room(room_(listener.port));
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
  for (int i = 0; i < kAcceptsPerEvent && listener.accepts(); ++i) {
    if (leading_ && !has_room(listener)) {
      listener.full = true;
      update_accepting(listener);
      return;
    }
    if (leading_ && listener.has_unclaimed()) {
      ClientSocket socket = listener.next_unclaimed();
      const VirtualAddress peer = peer_of(socket.fd());
      take_client(listener, std::move(socket), peer);
      continue;
    }
    VirtualAddress peer;
    const int fd = accept_client(listener.fd(), peer);
    if (fd >= 0) pause_.accepted();
    if (fd >= 0 && !leading_) {
      strangers_(fd, listener.port, text(peer));
      continue;
    }
    if (fd >= 0) {
      take_client(listener, ClientSocket(fd), peer);
      continue;
    }
    if (pause_.failed(errno, fmt::format("port {}", listener.port)) != AcceptError::kOneClient) {
      return;
    }
  }
}

void Proxy::take_client(Listener& listener, ClientSocket socket, const VirtualAddress& peer) {
  const int fd = socket.fd();
  const VirtualAddress local = local_of(fd);
  ConnectBody body = connect_body(listener.port, peer, local);
  Client& client = clients_.add(
      std::make_unique<Client>(std::move(socket), listener.port, options_.connection, this));
  client.listener = &listener;
  if (shared_) {
    shared_->opened(fd);
    client.id = socket_id(fd);
    if (value(client.id) != 0) client.slot = shared_->table().claim(client.id);
  }
  body.slot = client.slot;
  body.socket = client.id;
  if (moved_) {
    body.tcp = moved_->start_of(client.socket(), local, body.peer);
    client.move.host_port = listener.host_port();
    told(client, body);
  }
  listener.taken();
  client.watch(base_, on_client, on_writable);
  ++counters_.accepted;
  batch_.add_connect(client, body);
  // The request usually came with the connection: it joins the same batch.
  read_client(client);
}

// --- clients -> entries --------------------------------------------------------------------------

void Proxy::on_client(int, short what, void* argument) {
  Client& client = *static_cast<Client*>(argument);
  client.proxy->on_event_();
  client.readable = true;
  client.ends = client.ends || (what & EV_CLOSED) != 0;
  client.proxy->read_client(client);
}

void Proxy::read_client(Client& client) {
  if (!client.readable || !client.watched || paused_) return;
  if (batch_.bytes() >= kBatchBytes) {
    read_again_ = true;
    return;
  }
  const std::size_t before = batch_.bytes();
  const std::size_t queued_before = client.queued();
  const Connection::Read got = client.read(batch_);
  counters_.bytes_in += batch_.bytes() - before;
  // A FIN that came with the bytes rings no second time.
  const bool drained = got == Connection::Read::kDrained && !client.ends;
  client.readable = !drained && got != Connection::Read::kEnded;
  write_done(client, queued_before, client.queued() == 0);  // the socket may have broken
}

void Proxy::opened(Opener& opener) {
  Client& client = static_cast<Client&>(opener);
  clients_.named(client);
  client.listener->proposed(value(client.conn));
}

void Proxy::settle() {
  if (moved_) moved_->settle();
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

// Those that wait in the kernel to be accepted have no timers of the server yet.
bool Proxy::read_all(std::uint64_t outage) {
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

void Proxy::pause(bool paused) {
  if (paused == paused_) return;
  paused_ = paused;
  for (const auto& listener : listeners_) update_accepting(*listener);
  if (!paused_) clients_.for_each([this](Client& client) { read_client(client); });
}

// --- the log -> clients --------------------------------------------------------------------------

void Proxy::committed(EntryType type, Index index, std::span<const std::byte> body) {
  switch (type) {
    case EntryType::kStart:
      return with_body<StartBody>(body, [this](const auto& b) { started(b); });
    case EntryType::kConnect:
      return with_body<ConnectBody>(body, [&](const auto& b) { connected(index, b); });
    case EntryType::kConnected:
      return with_body<ConnectedBody>(body, [this](const auto& b) { outcome(b); });
    case EntryType::kResolved:
      return with_body<ResolvedBody>(body, [this](const auto& b) { names_.committed(b); });
    case EntryType::kTaken:
      return taken(body);
    default:
      return committed_of_client(type, body);
  }
}

void Proxy::committed_of_client(EntryType type, std::span<const std::byte> body) {
  const bool of_connection = type == EntryType::kData || type == EntryType::kShutdown ||
                             type == EntryType::kReset || type == EntryType::kWindow;
  ConnBody about;
  if (!of_connection || !read_body(body, about)) return;
  Client* client = clients_.find(value(about.conn));
  if (client == nullptr) return;
  const QueueChange change(*this, *client);
  WindowBody window;
  if (type == EntryType::kData) {
    client->committed_data(body.size() - sizeof(DataBody));
    if (client->serves() && !std::exchange(client->settles, true)) settling_.push_back(client);
    if (moved_ && client->serves()) moved_->committed(*client);
  } else if (type == EntryType::kShutdown) {
    client->committed_shutdown();
    if (moved_ && client->serves()) moved_->committed(*client);
  } else if (type == EntryType::kReset) {
    client->committed_reset();
  } else if (read_body(body, window)) {
    client->committed_window(window.total);
  }
}

void Proxy::connected(Index index, const ConnectBody& body) {
  if (shared_) shared_->table().set_logged(body.slot, body.socket);
  if (Client* own = clients_.find(value(index))) {
    own->committed = true;
    return;
  }
  // Of one that the leader has done with, which a replica that catches up hears of late, nothing
  // can be taken over.
  if (shared_ ? !shared_->table().put_of(body.slot, body.socket) : body.tcp.mss == 0) return;
  if (!shared_ && !moved_) return;
  restore(ConnId{value(index)}, body, {});
}

void Proxy::restore(ConnId conn, const ConnectBody& opened, const ConnectionProgress& progress,
                    const std::string& path) {
  Client& client = clients_.add(std::make_unique<Client>(opened.port, options_.connection, this));
  client.conn = conn;
  client.id = opened.socket;
  client.slot = opened.slot;
  client.committed = true;
  client.restore(progress);
  if (moved_) told(client, opened);
  client.move.taken = progress.taken;
  clients_.named(client);
  client.to = {{opened.peer, opened.local}, path};
  if (is_outbound(conn)) name_destination(client.to);
}

// Connections of an earlier leader end, also for the server.
void Proxy::started(const StartBody& body) {
  if (body.resets == Resets::kNone) return;
  clients_.for_each([this, &body](Client& client) {
    if (body.resets == Resets::kThoseThatStay && client.move.tcp.mss != 0) return;
    if (client.opening != Opening::kOver) return;  // the new leader opens it
    const QueueChange change(*this, client);
    client.committed_reset();
  });
}

// --- records -> clients --------------------------------------------------------------------------

void Proxy::put_out(const OutputHeader& header, Pieces pieces, bool last) {
  if (header.type == OutputType::kListen || header.type == OutputType::kUnlisten) {
    const bool listens = header.type == OutputType::kListen;
    set_listening(static_cast<std::uint16_t>(header.conn), listens,
                  !listens && header.argument == 1);
    return;
  }
  if (header.type == OutputType::kConnect || header.type == OutputType::kResolve) {
    return asked(header, pieces.empty() ? std::span<const std::byte>{} : pieces.front());
  }
  Client* client = clients_.find(header.conn);
  if (client == nullptr) return;
  if (!leading_ && !shared_ && !client->moves()) {  // what it writes no other leader will need
    if (header.type == OutputType::kClose) forget(*client);
    return;
  }
  const std::size_t queued_before = client->queued();
  bool done = true;
  switch (header.type) {
    case OutputType::kBytes:
      for (const std::span<const std::byte> piece : pieces) counters_.bytes_out += piece.size();
      if (holds_output_of(*client)) {
        client->keep(header.argument, pieces);
      } else {
        done = client->write(header.argument, pieces, batch_, last);
      }
      break;
    case OutputType::kShutdown:
      done = client->shut_down(batch_);
      break;
    case OutputType::kClose:
      done = client->close(header.argument != 0, batch_);
      break;
    case OutputType::kRefused:
      ++counters_.refused;
      done = client->close(true, batch_);
      break;
    case OutputType::kConsumed:
      client->consumed(header.argument);
      return read_client(*client);
    default:
      return;
  }
  write_done(*client, queued_before, done);
}

void Proxy::on_writable(int, short, void* argument) {
  Client& client = *static_cast<Client*>(argument);
  client.proxy->on_event_();
  if (client.proxy->holds_output_of(client)) return client.watch_writing(false);
  const std::size_t queued_before = client.queued();
  const bool done = client.flush(client.proxy->batch_);
  client.proxy->write_done(client, queued_before, done);
}

void Proxy::write_done(Client& client, std::size_t queued_before, bool done) {
  queued_ += client.queued();
  queued_ -= queued_before;
  if (!leading_) {
    if (client.server_closed() && shared_) closed_.push_back(value(client.conn));
    return trim(client);
  }
  if (client.fd() < 0) {
    if (client.finished()) forget(client);
    return;
  }
  if (shared_) shared_->table().set_put(client.slot, client.put());
  if (moved_) moved_->written(client);
  client.watch_writing(!done && !holds_output_of(client));
  if (queued_ > options_.queued_bytes_max) reset_slowest();
}

void Proxy::reset_slowest() {
  Client& client = clients_.slowest();
  spdlog::warn("a client that takes too little of its output was reset: {} bytes waited",
               client.queued());
  ++counters_.reset_slow;
  const std::size_t queued_before = client.queued();
  client.reset(batch_, true);
  write_done(client, queued_before, true);
}

// The lead is not lost yet: the server's sides go by RESETs, if they can be proposed at all.
void Proxy::reset_all() {
  clients_.for_each([this](Client& client) {
    if (client.fd() < 0 || client.moves()) return;  // those another leader may have by now
    ++counters_.reset_leader;
    const std::size_t queued_before = client.queued();
    client.reset(batch_, true);
    write_done(client, queued_before, true);
  });
}

void Proxy::forget(Client& client) {
  queued_ -= client.queued();
  if (leading_ && shared_) shared_->table().release(client.slot);  // TABLE-1
  if (moved_) moved_->ended(client);
  if (client.settles) std::erase(settling_, &client);
  clients_.forget(client);
  pause_.end();
}

// --- leadership ----------------------------------------------------------------------------------

void Proxy::take_strangers(bool on) {
  if (on == takes_strangers_ || leading_) return;
  CRANE_ASSERT(!on || strangers_);
  takes_strangers_ = on;
  for (const auto& listener : listeners_) update_accepting(*listener);
}

void Proxy::lead(bool leading, std::uint32_t reign) {
  const bool stops = leading_ && !leading;
  leading_ = leading;
  if (leading_) {
    takes_strangers_ = false;
    if (shared_) take_over();
    if (moved_) take_moved(reign);
    dial_all();
  } else if (stops) {
    step_down();
  }
  names_.lead(leading_);
  if (!leading_ && shared_) shared_->stop_writing();
  for (const auto& listener : listeners_) {
    if (leading_) follow_server(*listener);
    update_accepting(*listener);
  }
}

void Proxy::end() {
  if (leading_) {
    counters_.reset_leader += clients_.size();
    clients_.for_each([this](Client& client) { client.reset(batch_, false); });
    for (const auto& listener : listeners_) {
      for (ClientSocket& socket : listener->take_unclaimed()) socket.reset();
    }
    if (moved_) moved_->flush();
  }
  lead(false);
}

void Proxy::step_down() {
  if (moved_) moved_->stop();
  holds_output_ = false;
  batch_.clear();
  settling_.clear();
  read_again_ = false;
  for (const auto& listener : listeners_) {
    listener->stop();
    for (ClientSocket& socket : listener->take_unclaimed()) left_.push_back(std::move(socket));
  }
  clients_.for_each([this](Client& client) {
    client.settles = false;
    if (client.opening != Opening::kOver) return forget_attempt(client);
    if (client.moves() && client.committed) return leave(client);
    if (!shared_) {
      ++counters_.reset_leader;
      client.reset(batch_, false);
      return forget(client);
    }
    client.unwatch();  // CLIENT-2
    if (!client.committed) {
      left_.push_back(client.surrender());
      return forget(client);
    }
    client.to.is_unix() ? end_here(client) : client.follow();
    client.look_at = 0;
    if (client.server_closed()) closed_.push_back(value(client.conn));
  });
}

}  // namespace crane::proxy
