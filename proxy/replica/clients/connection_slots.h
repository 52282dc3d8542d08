// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory that all nodes of one host map, and that shows each other's connections
// (proxy/clients/connection_table.h).
//
// Threads: one per process.
// INVARIANT TABLE-1  A slot that contains a connection's SocketId belongs to that connection until
//                    the writer has closed its socket.

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
  // Equals `socket` when its CONNECT is committed (set by any node).
  std::atomic<std::uint64_t> logged;
};

class ConnectionSlots {
 public:
  // Both outlive the object.  `used`: slots from this one on were never used.
  ConnectionSlots(std::atomic<std::uint32_t>& used, std::span<ConnectionSlot> slots) noexcept
      : used_(used), slots_(slots) {}

  // Only the writer calls these methods, except put_of() and set_logged().  kNoTableSlot: none is
  // left.
  std::uint32_t claim(SocketId socket);
  void set_put(std::uint32_t slot, std::uint64_t put) noexcept;
  void release(std::uint32_t slot);
  // Called by a new writer: frees all slots but these.
  void keep_only(const std::vector<std::uint32_t>& slots);
  // The sockets that have slots, in order.
  std::vector<SocketId> sockets() const;
  // The connection's CONNECT is committed.  A replica that recovers after the connection's end
  // never sees that entry; without this mark it would take the socket for one that was accepted and
  // not proposed.
  void set_logged(std::uint32_t slot, SocketId socket) noexcept;
  // The sockets for which set_logged() was called, in order.
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
