// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/clients/client_list.h"

#include <algorithm>

#include "dmt/base/assert.h"

namespace crane::proxy {

void Client::watch() {
  CRANE_ASSERT(!watched && fd() >= 0);
  actions->push_back(client_actions::Watch{fd(), this});
  watched = true;
}

void Client::unwatch() noexcept {
  if (!std::exchange(watched, false)) return;
  writing = false;
  actions->push_back(client_actions::Unwatch{fd()});
}

void Client::allow_close(ClientSocket socket) noexcept {
  actions->push_back(client_actions::Close{std::move(socket)});
}

void Client::dial() {
  CRANE_ASSERT(!dials && fd() < 0);
  dials = true;
  actions->push_back(client_actions::Dial{conn});
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
