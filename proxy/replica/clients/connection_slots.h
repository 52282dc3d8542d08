// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the nodes of one host know of each other's connections: memory that all of them map
// (proxy/clients/connection_table.h).
//
// Threads: one per process.
// INVARIANT TABLE-1  A slot with a connection's SocketId is that connection's until the writer has
//                    closed its socket.

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dmt/base/ids.h"

namespace crane::proxy {

struct ConnectionSlot {
  std::atomic<SocketId> socket;
  std::atomic<std::uint64_t> put;
  std::atomic<std::uint64_t> logged;  // `socket` again: its CONNECT is committed (by any)
};

class ConnectionSlots {
 public:
  // Both outlive the object.  `used`: none from there on was ever used.
  ConnectionSlots(std::atomic<std::uint32_t>& used, std::span<ConnectionSlot> slots) noexcept
      : used_(used), slots_(slots) {}

  // The writer's but for put_of() and set_logged().  kNoTableSlot: there is none left.
  std::uint32_t claim(SocketId socket);
  void set_put(std::uint32_t slot, std::uint64_t put) noexcept;
  void release(std::uint32_t slot);
  // A new writer: all slots but these are free.
  void keep_only(const std::vector<std::uint32_t>& slots);
  // The sockets that have slots, in order.
  std::vector<SocketId> sockets() const;
  // The connection's CONNECT is committed.  A replica that recovers behind its end never hears of
  // it, and would take the socket for one that was accepted in vain.
  void set_logged(std::uint32_t slot, SocketId socket) noexcept;
  // The sockets of which that was said, in order.
  std::vector<SocketId> logged_sockets() const;
  // How many bytes the writer has put into the connection's socket.  nullopt: the writer has closed
  // the socket (TABLE-1), or the connection has no slot.
  std::optional<std::uint64_t> put_of(std::uint32_t slot, SocketId socket) const noexcept;

 private:
  template <typename Wanted>
  std::vector<SocketId> sorted_sockets(Wanted&& wanted) const;

  std::atomic<std::uint32_t>& used_;
  const std::span<ConnectionSlot> slots_;
  std::vector<std::uint32_t> free_;  // below used_
};

}  // namespace crane::proxy
