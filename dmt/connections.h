// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual TCP: listeners and connections as byte queues.  A connection's number shows which side
// opened it (is_outbound); that matters only until it is established (outbound.h).  Input arrives
// by admission, and output goes to the output ring.  Everything that a server can observe (byte
// counts, EOF, reset, send space) is a function of admitted entries and of its own operations
// (DESIGN D15, rules 1 and 21).
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"
#include "dmt/sequence/output.h"

namespace crane::dmt {

// --- the server's side -------------------------------------------------------------------------

// Bits of ListenerState::any_address.
inline constexpr std::uint16_t kWildcardAddress = 1, kReusesPort = 2, kOnlyIpv6 = 4;
// Crane chose the port, not the server.
inline constexpr std::uint16_t kChosenPort = 8;
// The connection was dissolved: connect_error reports it, and connect succeeds nevertheless.
inline constexpr std::uint16_t kDissolved = 64;
// For a unix socket that is no stream yet: the sides that shutdown closed.
inline constexpr std::uint16_t kShutRead = 16, kShutWrite = 32;
// Only clients of the loopback interface are accepted (SO_BINDTODEVICE).
inline constexpr std::uint16_t kLoopbackDevice = 128;

// The place at which the listener accepts clients.
ListenPlace place_of(const ListenerState& listener) noexcept;

// Whether `file` (kSocket, with listener.bound and any_address set by bind) may listen: no other
// listener has the port and address, unless both use SO_REUSEPORT.
bool may_listen(const Layout& w, std::uint32_t file) noexcept;

// Requests from the leader whether the outside can have the port that `file` is bound to
// (kPortWanted). Returns the object to wait for while ListenerState::question equals it.  Returns 0
// if no request is needed: the server already listens on the port, or has had no client yet (then a
// taken port ends the group).  `elsewhere`: the address may belong to no machine of the group; then
// it always requests.
std::uint64_t ask_for_port(Layout& w, Slot me, std::uint32_t file, bool elsewhere = false) noexcept;

// Makes the socket listen.  Returns false if not may_listen.
bool start_listening(Layout& w, std::uint32_t file, std::uint32_t backlog) noexcept;

// Takes the oldest queued connection of a listener and its reference; returns 0 if there is none.
std::uint32_t accept_connection(Layout& w, std::uint32_t listener) noexcept;

// Bytes that recv would return now: at most up to the mark (urgent.h).
std::uint64_t readable_bytes(const Layout& w, std::uint32_t file) noexcept;

// Copies up to `size` unread bytes and consumes them unless `peek`.  Returns how many.
std::size_t read_connection(Layout& w, std::uint32_t file, std::byte* out, std::size_t size,
                            bool peek) noexcept;

// REQUIRES: is_at_hidden_byte.  Called by a read that passes the byte, and when a new mark arrives.
void drop_hidden_byte(Layout& w, std::uint32_t file) noexcept;

// Bytes that may be written now (0 when S is used up).
std::uint64_t send_space(const Layout& w, std::uint32_t file) noexcept;

// Writes min(size, send_space) bytes to the client and returns how many.  `ends_urgent`: the last
// of the `size` bytes is urgent.
std::size_t write_connection(Layout& w, std::uint32_t file, const std::byte* data, std::size_t size,
                             bool ends_urgent = false) noexcept;

// Writes without a copy: reserves room for 1 to min(size, send_space) bytes; commit passes how many
// were filled, possibly 0.  REQUIRES: send_space, and not a loopback connection.
std::span<std::byte> reserve_written(Layout& w, std::uint32_t file, std::size_t size) noexcept;
void commit_written(Layout& w, std::uint32_t file, std::span<std::byte> room,
                    std::size_t filled) noexcept;

// connect(2) with AF_UNSPEC: `file` becomes a socket again, and the peer sees a reset.
void disconnect(Layout& w, std::uint32_t file) noexcept;

// shutdown(2) of one direction.
void shutdown_read(Layout& w, std::uint32_t file) noexcept;
void shutdown_write(Layout& w, std::uint32_t file) noexcept;

// --- for loopback.cc and outbound.cc ------------------------------------------------------------

// The file of a connection.  Returns 0 if the server has closed it; input for it is dropped (D15).
std::uint32_t find_connection(const Layout& w, ConnId conn) noexcept;
// Adds `file`, whose number is set, to the table of connections, or removes it.
void link_connection(Layout& w, std::uint32_t file) noexcept;
void unlink_connection(Layout& w, std::uint32_t file) noexcept;
// Writes a record to the output ring.
void emit(Layout& w, OutputType type, std::uint64_t conn, std::uint64_t argument,
          const std::byte* data, std::uint32_t size, OutputMarks marks = {}) noexcept;
// The unread byte after `before` others.  REQUIRES: there are more than `before`.
std::byte input_byte(Layout& w, std::uint32_t file, std::size_t before) noexcept;
void append_input(Layout& w, ConnectionState& c, const std::byte* data, std::size_t size) noexcept;
void reset_connection(Layout& w, std::uint32_t file) noexcept;
// Queues `file` at the listener for accept, which takes over its reference.
void queue_for_accept(Layout& w, std::uint32_t listener, std::uint32_t file) noexcept;

// --- called when the last reference drops (files.cc) ------------------------------------------

void close_connection(Layout& w, std::uint32_t file) noexcept;
void close_listener(Layout& w, std::uint32_t file) noexcept;

// --- admission's side ---------------------------------------------------------------------------

// PORT: wakes the bind that waits for it.
void admit_port(Layout& w, const PortBody& body) noexcept;
void admit_connect(Layout& w, Index index, const ConnectBody& body) noexcept;
void admit_data(Layout& w, ConnId conn, const std::byte* data, std::size_t size,
                bool ends_urgent = false) noexcept;
void admit_shutdown(Layout& w, ConnId conn) noexcept;
void admit_reset(Layout& w, ConnId conn) noexcept;
void admit_window(Layout& w, ConnId conn, std::uint64_t total) noexcept;
// `bodies`: TakenBody, one after another.
void admit_taken(Layout& w, std::span<const std::byte> bodies) noexcept;
// START: resets connections of an earlier view, in connection order (rule 7).
void reset_connections(Layout& w, Resets which) noexcept;

Readiness connection_readiness(const Layout& w, const FileRecord& file) noexcept;

}  // namespace crane::dmt
