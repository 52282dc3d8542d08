// SPDX-License-Identifier: Apache-2.0
#pragma once
// TCP between two sockets of the server, in one process or in two: each end is a kConnection whose
// other end is also a file (ConnectionState::loopback).  Bytes written at one end are at once
// readable at the other; neither the proxy nor the log sees them.  connections.h has the functions
// for all connections; they call these for loopback ends.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT LOOPBACK-1  While both ends live, the bytes that one end has sent and not drained are
//               the bytes that the other has not read.
// INVARIANT LOOPBACK-2  A loopback connection produces no output, and no entry concerns it.

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// The listener that a connection from the server to `to` reaches, 0 = none.  Among equals
// (SO_REUSEPORT) `number` decides.
std::uint32_t find_own_listener(const Layout& w, const VirtualAddress& to,
                                std::uint64_t number) noexcept;

// Whether its accept queue has room, as Linux counts.
bool has_room(const ListenerState& listener) noexcept;

// Connects `file` (kSocket) to `listener` and queues the other end for accept.  Returns false if
// the table of files is full.
bool connect_loopback(Layout& w, Slot me, std::uint32_t file, std::uint32_t listener,
                      const VirtualAddress& local, const VirtualAddress& peer) noexcept;

// connect() on a nonblocking socket found no listener: SO_ERROR and poll report it.
void refuse_later(Layout& w, std::uint32_t file) noexcept;

// Returns a port that no socket of the server has, from a counter; 0 = none is free.
std::uint16_t take_free_port(Layout& w) noexcept;

// Returns a free port for a bind without a port.  `refused` is the number of ports that the
// leader's machine has refused for this bind.  A few numbers are reused, because crane-run keeps a
// socket for each port on which the server has listened, and an FTP server opens a port for each
// transfer.
std::uint16_t take_listening_port(Layout& w, unsigned refused) noexcept;

// --- for connections.cc ------------------------------------------------------------------------

// The limit of bytes that an end has sent and the other has not read.
std::uint64_t loopback_limit(const Layout& w) noexcept;
// Whether there are blocks for `size` bytes; some blocks are reserved for clients.  If not, the
// call returns ENOBUFS, because nothing would wake a waiting writer when blocks are free again.
bool has_room_at_other_end(const Layout& w, std::size_t size) noexcept;
// `size` bytes were written at `file`, which had room for them; the last one may be urgent.
void pass_to_other_end(Layout& w, std::uint32_t file, const std::byte* data, std::size_t size,
                       bool ends_urgent) noexcept;
// `size` bytes were read at `file`.
void note_read(Layout& w, std::uint32_t file, std::size_t size) noexcept;
void pass_fin(Layout& w, std::uint32_t file) noexcept;
// Closes `file`, with a reset or with a FIN.
void leave_other_end(Layout& w, std::uint32_t file, bool reset) noexcept;

}  // namespace crane::dmt
