// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/client_list.h"

#include <algorithm>

#include "dmt/base/assert.h"

namespace crane::proxy {
namespace {
// A unix socket whose backlog is full is asked again so much later.
constexpr int kDialAgainUs = 20'000;
}  // namespace

void Client::watch(event_base* base, event_callback_fn on_readable, event_callback_fn on_writable) {
  CRANE_ASSERT(!watched && fd() >= 0);
  event_assign(&read_event, base, fd(), EV_READ | EV_CLOSED | EV_PERSIST | EV_ET, on_readable,
               this);
  event_assign(&write_event, base, fd(), EV_WRITE | EV_PERSIST | EV_ET, on_writable, this);
  event_add(&read_event, nullptr);
  watched = true;
}

void Client::watch_writing(bool on) {
  if (on == writing || !watched) return;
  writing = on;
  if (on) {
    event_add(&write_event, nullptr);
  } else {
    event_del(&write_event);
  }
}

void Client::unwatch() noexcept {
  if (!watched) return;
  watch_writing(false);
  event_del(&read_event);
  watched = false;
}

void Client::dial(ClientSocket socket, event_base* base, event_callback_fn on_dialed) {
  CRANE_ASSERT(!dialed && fd() < 0);
  dialed = std::move(socket);
  event_assign(&dial_event, base, dialed.fd(), EV_WRITE, on_dialed, this);
  event_add(&dial_event, nullptr);
}

void Client::dial_again(event_base* base, event_callback_fn on_due) {
  CRANE_ASSERT(!dialed && fd() < 0);
  event_assign(&dial_event, base, -1, 0, on_due, this);
  const timeval delay{0, kDialAgainUs};
  event_add(&dial_event, &delay);
  waits_to_dial = true;
}

ClientSocket Client::end_dial() noexcept {
  if (std::exchange(waits_to_dial, false) || dialed) event_del(&dial_event);
  return std::move(dialed);
}

Client& ClientList::add(std::unique_ptr<Client> client) {
  client->place = clients_.size();
  clients_.push_back(std::move(client));
  return *clients_.back();
}

Client* ClientList::find(std::uint64_t conn) noexcept {
  Client*& last = found_[conn % kFoundLast];
  if (last != nullptr && value(last->conn) == conn) return last;
  const auto found = by_conn_.find(conn);
  if (found == by_conn_.end()) return nullptr;
  last = found->second;
  return last;
}

void ClientList::forget(Client& client) {
  if (value(client.conn) != 0) {
    by_conn_.erase(value(client.conn));
    found_[value(client.conn) % kFoundLast] = nullptr;
  }
  const std::size_t place = client.place;
  std::swap(clients_[place], clients_.back());
  clients_[place]->place = place;
  clients_.pop_back();
}

Client& ClientList::slowest() noexcept {
  CRANE_ASSERT(!clients_.empty());
  return **std::max_element(clients_.begin(), clients_.end(),
                            [](const auto& a, const auto& b) { return a->queued() < b->queued(); });
}

}  // namespace crane::proxy
