// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/proxy.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "dmt/base/assert.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/host_sockets.h"
#include "proxy/clients/tuning.h"

namespace crane::proxy {
namespace {

constexpr timeval kAgain{1, 0};  // until the next attempt to start a keeper

}  // namespace

BacklogSpace ProxyHost::space_of(std::uint16_t) {
  constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  return {kNoLimit, kNoLimit};
}

bool ProxyHost::allows(const VirtualAddress&) { return true; }

HostPath ProxyHost::find_socket(std::string_view) { return {}; }

Proxy::Proxy(event_base* base, const ProxyOptions& options, ProxyHost& host)
    : base_(base),
      options_(options),
      host_(host),
      clients_(options),
      pause_(base, "clients", *this) {
  Resolver::Owner& owner = *this;
  if (options_.opens) names_.use(std::make_unique<Resolver>(base_, options_.resolver, owner));
}

Proxy::~Proxy() {
  clients_.take_clients_to_forward(false);  // the loop forgets all listeners
  lead(false);
  if (!shared_) return;
  if (event_initialized(&keeper_event_)) event_del(&keeper_event_);
  prune_followed();
  std::vector<ClientSocket> left = clients_.surrender_all();
  for (ClientSocket& socket : left) (void)socket.release();  // KEEPER-1
  if (left.empty()) shared_->none_left();
}

// --- actions -------------------------------------------------------------------------------------

void Proxy::run() {
  loop_.run(clients_, [this](auto& action) { carry_out(action); });
}

void Proxy::carry_out(const client_actions::Watch& action) {
  const auto at = static_cast<std::size_t>(action.fd);
  if (watches_.size() <= at) watches_.resize(at + 1);
  if (!watches_[at]) watches_[at] = std::make_unique<Watch>(Watch{this});
  Watch& watch = *watches_[at];
  watch.client = action.client;
  event_assign(&watch.read, base_, action.fd, EV_READ | EV_CLOSED | EV_PERSIST | EV_ET, on_client,
               &watch);
  event_assign(&watch.write, base_, action.fd, EV_WRITE | EV_PERSIST | EV_ET, on_writable, &watch);
  event_add(&watch.read, nullptr);
}

void Proxy::carry_out(const client_actions::WatchWriting& action) {
  event& write = watches_[static_cast<std::size_t>(action.fd)]->write;
  action.on ? event_add(&write, nullptr) : event_del(&write);
}

void Proxy::carry_out(const client_actions::Unwatch& action) {
  Watch& watch = *watches_[static_cast<std::size_t>(action.fd)];
  event_del(&watch.write);
  event_del(&watch.read);
  watch.client = nullptr;
}

void Proxy::carry_out(client_actions::Close& action) {
  action.socket.close();
  pause_.end();
}

void Proxy::carry_out(const client_actions::Accept& action) { update_accepting(action.port); }

void Proxy::carry_out(const client_actions::Listen& action) {
  if (action.on) close_leftovers(action.port);
  for (const auto& listener : listeners_) {
    if (listener->port != action.port) continue;
    if (!action.on) {
      listener->close_for_all();
    } else if (is_active(*listener) && !listener->listens() && !listener->open_again()) {
      spdlog::error("cannot listen on the server's {}: {}; its clients are refused",
                    place::text(listener->port, listener->address), std::strerror(errno));
    }
  }
}

void Proxy::carry_out(const client_actions::SetPut& action) {
  shared_->table().set_put(action.slot, action.put);
}

void Proxy::carry_out(const client_actions::SetLogged& action) {
  shared_->table().set_logged(action.slot, action.socket);
}

void Proxy::carry_out(const client_actions::Release& action) {
  shared_->table().release(action.slot);
}

void Proxy::carry_out(const client_actions::KeepOnly& action) {
  shared_->table().keep_only(action.slots);
}

void Proxy::carry_out(const client_actions::LogSlowClient& action) {
  spdlog::warn("a client that takes its output too slowly was reset: {} bytes were waiting",
               action.bytes);
}

// --- listeners -----------------------------------------------------------------------------------

bool Proxy::is_active(const Listener& listener) const noexcept {
  return std::any_of(listened_.begin(), listened_.end(),
                     [&listener](const Place& place) { return listener.serves(place); });
}

// LISTEN-2
void Proxy::close_leftovers(std::uint16_t port) noexcept {
  if (!may_close()) return;
  for (const auto& listener : listeners_) {
    if (listener->port == port && !listener->restarts && !is_active(*listener))
      listener->close_for_all();
  }
}

bool Proxy::is_covered(const Place& place) const noexcept {
  return std::any_of(listened_.begin(), listened_.end(), [&place](const Place& other) {
    return other.port == place.port && other.address != place.address && !other.address.empty() &&
           place::covers(other.address, place.address);
  });
}

void Proxy::make_way(const Place& place) noexcept {
  if (!may_close()) return;
  for (const auto& listener : listeners_) {
    if (listener->port == place.port && !is_active(*listener) &&
        place::overlap(listener->address, place.address) && !listener->serves(place))
      listener->close_for_all();
  }
}

void Proxy::end_restart() {
  for (const auto& listener : listeners_) {
    if (std::exchange(listener->restarts, false)) close_leftovers(listener->port);
  }
}

void Proxy::update_accepting(std::uint16_t port) {
  const bool on = clients_.accepts(port);
  for (const auto& listener : listeners_) {
    if (listener->port != port) continue;
    listener->accept_clients(on && is_active(*listener), clients_.has_unclaimed(port));
  }
}

void Proxy::add_listener(const Place& place, int fd, int backlog) {
  if (has_listener(place)) {
    ::close(fd);
    return;
  }
  const Listener& listener = *listeners_.emplace_back(
      std::make_unique<Listener>(*this, place, fd, backlog, base_, on_accept));
  if (shared_) shared_->add_port(listener.host_port());
  if (moved_) moved_->add_port(listener.host_port());
  clients_.add_port(place.port, listener.host_port());
  run();
  update_accepting(place.port);
}

bool Proxy::has_listener(const Place& place) const noexcept {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [&place](const auto& l) { return l->serves(place); });
}

bool Proxy::takes_clients(const Place& place) const noexcept {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [&place](const auto& l) { return l->serves(place) && l->listens(); });
}

// `clients_` counts ports: a port is listened at while the server listens at one of its places.
// Then the sockets of these places are open, and other sockets of the port are closed.  When no
// place is left, all sockets of the port are closed (LISTEN-2); during a restart they stay open.
void Proxy::set_listening(const Place& place, bool listening, bool restarts) {
  listening ? (void)listened_.insert(place) : (void)listened_.erase(place);
  const bool any = std::any_of(listened_.begin(), listened_.end(),
                               [&place](const Place& p) { return p.port == place.port; });
  for (const auto& listener : listeners_) {
    if (listener->serves(place)) listener->restarts = restarts;
  }
  clients_.set_listening(place.port, any, restarts);
  run();
  update_accepting(place.port);
}

void Proxy::refuse(bool on) {
  clients_.refuse(on);
  run();
}

void Proxy::take_clients_to_forward(bool on) {
  CRANE_ASSERT(!on || clients_to_forward_ != nullptr);
  clients_.take_clients_to_forward(on);
  run();
}

void Proxy::accept_pause_changed() {
  host_.woke();
  clients_.pause_accepting(pause_.on());
  run();
}

void Proxy::on_accept(int, short, void* argument) {
  Listener& listener = *static_cast<Listener*>(argument);
  listener.proxy->host_.woke();
  listener.proxy->accept_some(listener);
}

void Proxy::look_for_room() {
  for (const auto& listener : listeners_) {
    if (clients_.is_full(listener->port))
      clients_.look(listener->port, host_.space_of(listener->port));
  }
  run();
}

void Proxy::accept_some(Listener& listener) {
  for (int i = 0; i < kAcceptsPerEvent && clients_.accepts(listener.port); ++i) {
    if (leading() && !clients_.may_take(listener.port, host_.space_of(listener.port))) return run();
    if (ClientSocket socket = clients_.next_unclaimed(listener.port)) {
      const VirtualAddress peer = peer_of(socket.fd());
      take_client(listener, std::move(socket), peer);
      continue;
    }
    VirtualAddress peer;
    const int fd = accept_client(listener.fd(), peer);
    if (fd >= 0) pause_.accepted();
    if (fd >= 0 && !leading()) {
      clients_to_forward_->take_client_to_forward(fd, listener.port, text(peer));
      continue;
    }
    if (fd >= 0) {
      take_client(listener, host_socket(fd), peer);
      continue;
    }
    if (pause_.failed(errno, fmt::format("port {}", listener.port)) != AcceptError::kOneClient) {
      return;
    }
  }
  // Clients that wait in this process instead of the kernel cause no event.
  update_accepting(listener.port);
}

void Proxy::take_client(Listener& listener, ClientSocket socket, const VirtualAddress& peer) {
  SocketView seen = share_socket(socket);
  seen.peer = peer;
  if (moved_) seen.tcp = moved_->start_of(socket, seen.local, peer);
  clients_.accepted(listener.port, std::move(socket), seen);
  run();
}

SocketView Proxy::share_socket(const ClientSocket& socket) {
  SocketView seen;
  seen.local = local_of(socket.fd());
  if (!shared_) return seen;
  shared_->opened(socket.fd());
  seen.id = socket.id();
  if (value(seen.id) != 0) seen.slot = shared_->table().claim(seen.id);
  return seen;
}

// --- clients -------------------------------------------------------------------------------------

void Proxy::on_client(int, short what, void* argument) {
  Watch& watch = *static_cast<Watch*>(argument);
  watch.proxy->host_.woke();
  watch.proxy->clients_.readable(*watch.client, (what & EV_CLOSED) != 0);
  watch.proxy->run();
}

void Proxy::resume_reading() {
  clients_.resume_reading();
  run();
}

bool Proxy::read_all(std::uint64_t outage) {
  const bool all = clients_.read_all(outage);
  run();
  return all;
}

void Proxy::pause(bool paused) {
  clients_.pause(paused);
  run();
}

// --- the log -------------------------------------------------------------------------------------

void Proxy::committed(EntryType type, Index index, std::span<const std::byte> body) {
  if (type == EntryType::kResolved) {
    return with_body<ResolvedBody>(body, [this](const auto& b) { names_.committed(b); });
  }
  clients_.committed(type, index, body);
  run();
}

// --- leadership ----------------------------------------------------------------------------------

void Proxy::lead(bool leading, std::uint32_t reign) {
  if (leading) {
    adopt_sockets();
    clients_.lead(reign, adopts_none_);
  } else {
    clients_.follow();
  }
  run();
  names_.lead(leading);
  if (!leading && shared_) shared_->stop_writing();
}

void Proxy::end() {
  if (leading()) clients_.reset_all_unknown();
  lead(false);
}

void Proxy::restore(ConnId conn, const ConnectBody& opened, const ConnectionProgress& progress,
                    const std::string& path) {
  clients_.restore(conn, opened, progress, path);
  if (is_outbound(conn)) name_destination(clients_.find(conn)->to);
}

// --- sockets that the nodes of this host share ---------------------------------------------------

void Proxy::share(std::unique_ptr<SharedSockets> sockets) {
  shared_ = std::move(sockets);
  clients_.share(shared_->table());
  watch_keeper();
}

void Proxy::watch_keeper() {
  const int fd = shared_->keeper_fd();
  event_assign(&keeper_event_, base_, fd, static_cast<short>(fd < 0 ? EV_TIMEOUT : EV_READ),
               on_keeper_end, this);
  event_add(&keeper_event_, fd < 0 ? &kAgain : nullptr);
}

void Proxy::on_keeper_end(int, short, void* argument) {
  Proxy& proxy = *static_cast<Proxy*>(argument);
  proxy.host_.woke();
  proxy.shared_->replace_keeper();
  proxy.watch_keeper();
}

bool Proxy::may_lead(View view, std::int64_t now_ns) {
  if (!shared_) return true;
  const SharedSockets::Right right = shared_->become_writer(view, now_ns);
  adopts_none_ = right == SharedSockets::Right::kCannot;
  return right != SharedSockets::Right::kWaits;
}

// Another replica has adopted the sockets.
void Proxy::release_sockets() {
  clients_.release_sockets();
  shared_->none_left();
}

void Proxy::prune_followed() {
  if (leading() || !shared_) return;
  if (shared_->released()) release_sockets();
  clients_.prune();
  run();
}

void Proxy::adopt_sockets() {
  if (!shared_) return;
  if (shared_->released()) release_sockets();
  std::vector<ClientSocket> sockets;
  for (const int fd : shared_->adopt_sockets()) {
    set_stream_options(fd);  // their writer may have ended while it looked for a mark
    sockets.push_back(host_socket(fd));
  }
  clients_.sockets_adopted(std::move(sockets));
}

// --- clients of a virtual address ----------------------------------------------------------------

Outcome Proxy::move_clients_of(const std::string& address) {
  CRANE_ASSERT(!shared_ && !leading());
  auto moved = MovedClients::open(base_, address, batch(), *this);
  if (!moved.ok()) return moved.error();
  moved_ = std::move(moved).value();
  clients_.move(*moved_);
  for (const auto& listener : listeners_) moved_->add_port(listener->host_port());
  return Done{};
}

void Proxy::serve_moved(Client& client, ClientSocket socket, std::uint64_t put) {
  clients_.serve_moved(client, std::move(socket), put);
  run();
}

void Proxy::gone(Client& client) {
  clients_.gone(client);
  run();
}

void Proxy::carry_out(const client_actions::CloseSilently& action) {
  const MovedClients::Departure left = moved_->leave(*action.client);
  clients_.left(*action.client, left.taken, left.lacks);
}

}  // namespace crane::proxy
