// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/clients/connection_slots.h"

#include <algorithm>

#include "dmt/sequence/entry.h"

namespace crane::proxy {

std::uint32_t ConnectionSlots::claim(SocketId socket) {
  std::uint32_t slot = kNoTableSlot;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else if (const std::uint32_t used = used_.load(); used < slots_.size()) {
    slot = used;
    used_.store(used + 1);
  } else {
    return kNoTableSlot;
  }
  slots_[slot].put.store(0, std::memory_order_relaxed);
  slots_[slot].logged.store(0, std::memory_order_relaxed);
  slots_[slot].socket.store(socket, std::memory_order_release);
  return slot;
}

void ConnectionSlots::set_put(std::uint32_t slot, std::uint64_t put) noexcept {
  if (slot < slots_.size()) slots_[slot].put.store(put, std::memory_order_release);
}

void ConnectionSlots::release(std::uint32_t slot) {
  if (slot >= slots_.size()) return;
  slots_[slot].socket.store(SocketId{0}, std::memory_order_release);  // TABLE-1
  free_.push_back(slot);
}

void ConnectionSlots::keep_only(const std::vector<std::uint32_t>& slots) {
  const std::uint32_t used = used_.load();
  std::vector<bool> kept(used, false);
  for (const std::uint32_t slot : slots) {
    if (slot < used) kept[slot] = true;
  }
  free_.clear();
  for (std::uint32_t slot = used; slot-- > 0;) {
    if (!kept[slot]) release(slot);
  }
}

template <typename Wanted>
std::vector<SocketId> ConnectionSlots::sorted_sockets(Wanted&& wanted) const {
  std::vector<SocketId> all;
  const std::size_t used = std::min<std::size_t>(used_.load(), slots_.size());
  for (const ConnectionSlot& s : slots_.first(used)) {
    const SocketId socket = s.socket.load(std::memory_order_acquire);
    if (socket != SocketId{0} && wanted(s, socket)) all.push_back(socket);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<SocketId> ConnectionSlots::sockets() const {
  return sorted_sockets([](const ConnectionSlot&, SocketId) { return true; });
}

void ConnectionSlots::set_logged(std::uint32_t slot, SocketId socket) noexcept {
  if (!put_of(slot, socket)) return;
  slots_[slot].logged.store(value(socket), std::memory_order_release);
}

std::vector<SocketId> ConnectionSlots::logged_sockets() const {
  return sorted_sockets([](const ConnectionSlot& s, SocketId socket) {
    return s.logged.load(std::memory_order_acquire) == value(socket);
  });
}

std::optional<std::uint64_t> ConnectionSlots::put_of(std::uint32_t slot,
                                                     SocketId socket) const noexcept {
  if (slot >= slots_.size()) return std::nullopt;
  const ConnectionSlot& s = slots_[slot];
  if (s.socket.load(std::memory_order_acquire) != socket) return std::nullopt;
  const std::uint64_t put = s.put.load(std::memory_order_acquire);
  if (s.socket.load(std::memory_order_acquire) != socket) return std::nullopt;
  return put;
}

}  // namespace crane::proxy
