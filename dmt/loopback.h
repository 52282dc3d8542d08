// SPDX-License-Identifier: Apache-2.0
#pragma once
// TCP between two sockets of the server, in one process or in two: each end is a kConnection whose
// other end is a file as well (ConnectionState::loopback).  What one end writes is at once there to
// be read at the other; no proxy and no log knows of it.  What any connection does is in
// connections.h, whose functions call these for the ends of such a connection.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT LOOPBACK-1  While both ends live, what an end has sent and not drained is what the
// other
//               one has not read.
// INVARIANT LOOPBACK-2  Nothing of a loopback connection is put out, and no entry concerns it.

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// The listener that a connection from the server to `to` reaches, 0 = none; among equals
// (SO_REUSEPORT) `number` decides.
std::uint32_t find_own_listener(const Layout& w, const VirtualAddress& to,
                                std::uint64_t number) noexcept;

// Whether its queue of connections that wait for accept has room, as Linux counts.
bool has_room(const ListenerState& listener) noexcept;

// `file` (kSocket) is connected to `listener`, where the other end waits for accept.  False: the
// table of files is full.
bool connect_loopback(Layout& w, Slot me, std::uint32_t file, std::uint32_t listener,
                      const VirtualAddress& local, const VirtualAddress& peer) noexcept;

// connect() on a nonblocking socket found no listener: SO_ERROR and poll tell it.
void refuse_later(Layout& w, std::uint32_t file) noexcept;

// A port that no socket of the server has, from a counter; 0 = none is free.
std::uint16_t take_free_port(Layout& w) noexcept;

// The same for a bind that leaves the choice; `refused`: how many the leader's machine has refused
// for this bind.  A few numbers are used again and again: crane-run keeps a socket for each port on
// which the server has listened, and an FTP server opens a port for each transfer.
std::uint16_t take_listening_port(Layout& w, unsigned refused) noexcept;

// --- for connections.cc ------------------------------------------------------------------------

// Bytes that an end may have sent and the other not read.
std::uint64_t loopback_limit(const Layout& w) noexcept;
// Whether there are blocks for so many bytes; a part of them is for clients alone.  Without them
// the call is ENOBUFS: a writer that waits would not be told when there are some again.
bool has_room_at_other_end(const Layout& w, std::size_t size) noexcept;
// `size` bytes were written at `file`, which had room for them; the last one may be urgent.
void pass_to_other_end(Layout& w, std::uint32_t file, const std::byte* data, std::size_t size,
                       bool ends_urgent) noexcept;
// `size` bytes were read at `file`.
void note_read(Layout& w, std::uint32_t file, std::size_t size) noexcept;
void pass_fin(Layout& w, std::uint32_t file) noexcept;
// `file` is closed, with a reset or with a FIN.
void leave_other_end(Layout& w, std::uint32_t file, bool reset) noexcept;

}  // namespace crane::dmt
