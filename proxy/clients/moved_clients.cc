// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/moved_clients.h"

#include <arpa/inet.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "dmt/base/assert.h"
#include "dmt/base/clock.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/moved_socket.h"
#include "proxy/clients/tuning.h"

namespace crane::proxy {
namespace {

// Clocks of hosts differ by less than this; it separates the time stamps of one leader from the
// next one's.
constexpr std::uint32_t kReignMs = 10'000;
// The time for a client's answer; the probe is repeated.  After that the kernel handles an absent
// client.
constexpr std::int64_t kPatienceNs = 30'000'000'000, kAskAgainNs = 200'000'000;
constexpr int kAnswerLookUs = 1'000, kLateAnswerLookUs = 5'000;
// The first segment may be an older one that was in flight: then the client has more than it says.
// A socket after that would never accept the client's acknowledgements.
constexpr std::int64_t kQuietNs = 3'000'000, kQuietRoundTrips = 2;
constexpr int kTakenLookUs = 20'000;
constexpr std::size_t kTakenMost = 1000;  // in one entry

// A client that was silent for this long has nothing in flight to the earlier leader.
std::int64_t quiet_ns(const TcpStart& start) noexcept {
  return std::max(kQuietNs, kQuietRoundTrips * std::int64_t{start.rtt_us} * 1000);
}

}  // namespace

Result<std::unique_ptr<MovedClients>> MovedClients::open(event_base* base,
                                                         const std::string& address, Batch& batch,
                                                         Owner& owner) {
  std::unique_ptr<MovedClients> moved(new MovedClients(base, batch, owner));
  auto gate = EgressGate::open(base, address);
  if (!gate.ok()) return gate.error();
  moved->gate_ = std::move(gate).value();
  moved->address_.family = AF_INET;
  (void)::inet_pton(AF_INET, address.c_str(), moved->address_.ip);
  moved->tick_ = ::evtimer_new(base, on_tick, moved.get());
  return moved;
}

MovedClients::~MovedClients() {
  if (tick_ != nullptr) ::event_free(tick_);
  if (gate_) gate_->take_down();
}

std::uint32_t MovedClients::clock() const noexcept {
  return static_cast<std::uint32_t>(realtime_ns() / 1'000'000) + reign_ * kReignMs;
}

// --- on the leader -------------------------------------------------------------------------------

TcpStart MovedClients::start_of(const ClientSocket& socket, const VirtualAddress& local,
                                const VirtualAddress& peer) const {
  if (!same_ip(local, address_)) return {};
  const std::optional<Handshake> handshake = gate_->handshake_of(peer, local.port);
  if (!handshake) return {};
  const Result<TcpStart> start = tcp_start_of(socket, *handshake, clock());
  return start.ok() ? start.value() : TcpStart{};
}

void MovedClients::committed(const Client& client) {
  if (!client.moves()) return;
  const auto received = static_cast<std::uint32_t>(client.received());
  gate_->allow(client.move.peer, client.move.host_port, client.move.tcp.received + received);
}

void MovedClients::written(Client& client) {
  if (!client.moves() || !std::exchange(client.move.all_logged, false)) return;
  written_.push_back(&client);
  arm();
}

void MovedClients::ended(Client& client) {
  std::erase(unanswered_, &client);
  std::erase(written_, &client);
  if (!client.moves() || !leads_) return;
  gate_->forget(client.move.peer, client.move.host_port);
  if (client.committed) unproposed_takes_.push_back({client.conn, kTakenAll});
  arm();
}

void MovedClients::arm() {
  if (::evtimer_pending(tick_, nullptr) != 0) return;
  if (unanswered_.empty() && written_.empty() && unproposed_takes_.empty()) return;
  const bool early = monotonic_ns() - first_request_ns_ < kAskAgainNs;
  const int ask_us = early ? kAnswerLookUs : kLateAnswerLookUs;
  const timeval soon{0, unanswered_.empty() ? kTakenLookUs : ask_us};
  ::evtimer_add(tick_, &soon);
}

void MovedClients::on_tick(int, short, void* argument) {
  static_cast<MovedClients*>(argument)->tick();
}

void MovedClients::tick() {
  if (!leads_) return;
  owner_.woke();
  look_at_answers(monotonic_ns());
  propose_acknowledged();
  arm();
}

// The next tick looks again at clients that have not acknowledged everything.
void MovedClients::propose_acknowledged() {
  std::vector<Client*> again;
  for (Client* client : std::exchange(written_, {})) {
    const std::uint64_t total = client->acknowledged();
    if (total > client->move.taken)
      unproposed_takes_.push_back({client->conn, client->move.taken = total});
    if (client->is_out()) {
      owner_.gone(*client);
    } else if (total < client->put() || client->server_closed()) {
      again.push_back(client);
    } else {
      client->move.all_logged = true;
    }
  }
  written_.insert(written_.end(), again.begin(), again.end());
  for (std::size_t at = 0; at < unproposed_takes_.size(); at += kTakenMost) {
    batch_.add_taken(std::span(unproposed_takes_)
                         .subspan(at, std::min(kTakenMost, unproposed_takes_.size() - at)));
  }
  unproposed_takes_.clear();
}

// --- changes of the leader -----------------------------------------------------------------------

void MovedClients::lead(std::uint32_t reign) {
  leads_ = true;
  reign_ = reign;
  gate_->take_over();
  first_request_ns_ = last_request_ns_ = monotonic_ns();
}

bool MovedClients::take(Client& client, std::uint16_t host_port) {
  // The replica has recovered, and the client may lack earlier output.
  if (!client.moves() || client.move.taken < client.put()) return false;
  client.move.host_port = host_port;
  committed(client);
  client.move.asked = make(client, client.put(), client.unput());
  if (!client.move.asked) return false;
  client.move.probe_position = client.put() + client.unput().size();
  client.move.answered_segments = 0;
  unanswered_.push_back(&client);
  arm();
  return true;
}

// Empty: the connection cannot continue; the reason is logged.
ClientSocket MovedClients::make(const Client& client, std::uint64_t put,
                                std::span<const std::byte> output) const {
  VirtualAddress local = address_;
  local.port = client.move.host_port;
  Result<ClientSocket> made = make_socket(
      {client.move.tcp, local, client.move.peer, client.received(), put, output}, clock());
  if (made.ok()) return std::move(made).value();
  spdlog::warn("the connection of {} cannot continue on this host: {}", text(client.move.peer),
               made.error().message());
  return {};
}

void MovedClients::look_at_answers(std::int64_t now_ns) {
  const bool patient = now_ns - first_request_ns_ < kPatienceNs;
  const bool again = now_ns - last_request_ns_ > kAskAgainNs;
  if (again) last_request_ns_ = now_ns;
  std::vector<Client*> ready;
  std::erase_if(unanswered_, [&](Client* client) {
    const std::uint32_t answered_segments = segments_of(client->move.asked);
    if (answered_segments != std::exchange(client->move.answered_segments, answered_segments))
      client->move.last_answer_ns = now_ns;
    if (again && answered_segments == 0) ask_again(client->move.asked);
    const bool quiet = now_ns - client->move.last_answer_ns >= quiet_ns(client->move.tcp);
    if (patient && (answered_segments == 0 || !quiet)) return false;
    ready.push_back(client);
    return true;
  });
  for (Client* client : ready) serve(*client);
}

void MovedClients::serve(Client& client) {
  if (client.move.answered_segments ==
      0) {  // the kernel keeps probing, with output that may be lost
    return owner_.serve_moved(client, std::move(client.move.asked), client.move.probe_position);
  }
  const std::vector<std::byte> lacks = leave_silently(std::move(client.move.asked));
  const std::uint64_t put = client.move.probe_position - lacks.size();
  client.move.taken = std::max(client.move.taken, put);
  owner_.serve_moved(client, make(client, put, {}), put);
}

MovedClients::Departure MovedClients::leave(Client& client) {
  if (client.move.asked) {
    (void)leave_silently(std::move(client.move.asked));
    return {};
  }
  const std::uint64_t taken = client.acknowledged();
  ClientSocket socket = client.surrender();
  if (!socket) return {};
  return {taken, leave_silently(std::move(socket))};
}

void MovedClients::stop() {
  leads_ = false;
  gate_->close();
  unanswered_.clear();
  written_.clear();
  unproposed_takes_.clear();
  ::evtimer_del(tick_);
}

}  // namespace crane::proxy
