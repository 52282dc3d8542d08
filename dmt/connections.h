// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual TCP: listeners and connections as byte queues; who opened a connection is told by its
// number (is_outbound) and matters only until it is there (outbound.h).  Input arrives by
// admission, output goes to the output ring; everything that a server can observe (byte counts,
// EOF, reset, send space) is a function of admitted entries and of its own operations (DESIGN D15,
// rules 1 and 21).
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
// .. and the port is Crane's choice, not the server's.
inline constexpr std::uint16_t kChosenPort = 8;
// .. and its connection was dissolved: connect_error tells that, and connect goes on all the same.
inline constexpr std::uint16_t kDissolved = 64;
// Of a unix socket that is no stream yet: what shutdown has closed.
inline constexpr std::uint16_t kShutRead = 16, kShutWrite = 32;
// .. and only clients of the loopback interface are heard (SO_BINDTODEVICE).
inline constexpr std::uint16_t kLoopbackDevice = 128;

// Where a listener's clients come.
ListenPlace place_of(const ListenerState& listener) noexcept;

// Whether `file` (kSocket, with listener.bound and any_address set by bind) may listen: no other
// listener has the port and the address, unless both are of SO_REUSEPORT.
bool may_listen(const Layout& w, std::uint32_t file) noexcept;

// Asks the leader whether the outside can have the port that `file` is bound to (kPortWanted), and
// returns the object to wait for while ListenerState::question is that; 0: nothing to ask, because
// the server listens on it already, or has had no client yet (then a taken port ends the group).
// `elsewhere`: the address may be no machine's of the group, which is always asked.
std::uint64_t ask_for_port(Layout& w, Slot me, std::uint32_t file, bool elsewhere = false) noexcept;

// It starts listening.  False: see may_listen.
bool start_listening(Layout& w, std::uint32_t file, std::uint32_t backlog) noexcept;

// The oldest queued connection of a listener, or 0.  The queue's reference becomes the caller's.
std::uint32_t accept_connection(Layout& w, std::uint32_t listener) noexcept;

// Bytes that recv would give now: at most to the mark (urgent.h).
std::uint64_t readable_bytes(const Layout& w, std::uint32_t file) noexcept;

// Copies up to `size` unread bytes out, without consuming them when `peek`.  Returns how many.
std::size_t read_connection(Layout& w, std::uint32_t file, std::byte* out, std::size_t size,
                            bool peek) noexcept;

// REQUIRES: is_at_hidden_byte.  A read passes over it, as does a mark that comes then.
void drop_hidden_byte(Layout& w, std::uint32_t file) noexcept;

// Bytes that may be written now (0 when S is used up).
std::uint64_t send_space(const Layout& w, std::uint32_t file) noexcept;

// Writes min(size, send_space) bytes to the client; returns how many.  `ends_urgent`: the last of
// all of them is urgent.
std::size_t write_connection(Layout& w, std::uint32_t file, const std::byte* data, std::size_t size,
                             bool ends_urgent = false) noexcept;

// Writing without a copy: room for at most min(size, send_space) bytes, more than 0 of them, and
// how many of them were filled, 0 or more.  REQUIRES: send_space, and that it is no loopback
// connection.
std::span<std::byte> reserve_written(Layout& w, std::uint32_t file, std::size_t size) noexcept;
void commit_written(Layout& w, std::uint32_t file, std::span<std::byte> room,
                    std::size_t filled) noexcept;

// connect(2) with AF_UNSPEC: `file` is a socket again, and its peer has a reset.
void disconnect(Layout& w, std::uint32_t file) noexcept;

// shutdown(2) halves.
void shutdown_read(Layout& w, std::uint32_t file) noexcept;
void shutdown_write(Layout& w, std::uint32_t file) noexcept;

// --- for loopback.cc and outbound.cc ------------------------------------------------------------

// The file of a connection; 0: the server closed it, and what still arrives for it is dropped
// (D15).
std::uint32_t find_connection(const Layout& w, ConnId conn) noexcept;
// `file`, whose number is set, is found by that; no more.
void link_connection(Layout& w, std::uint32_t file) noexcept;
void unlink_connection(Layout& w, std::uint32_t file) noexcept;
// A record of the output ring.
void emit(Layout& w, OutputType type, std::uint64_t conn, std::uint64_t argument,
          const std::byte* data, std::uint32_t size, OutputMarks marks = {}) noexcept;
// The unread byte behind `before` others.  REQUIRES: there are more.
std::byte input_byte(Layout& w, std::uint32_t file, std::size_t before) noexcept;
void append_input(Layout& w, ConnectionState& c, const std::byte* data, std::size_t size) noexcept;
void reset_connection(Layout& w, std::uint32_t file) noexcept;
// `file` waits at the listener for accept, which takes over its reference.
void queue_for_accept(Layout& w, std::uint32_t listener, std::uint32_t file) noexcept;

// --- called when the last reference goes (files.cc) ---------------------------------------------

void close_connection(Layout& w, std::uint32_t file) noexcept;
void close_listener(Layout& w, std::uint32_t file) noexcept;

// --- admission's side ---------------------------------------------------------------------------

// PORT: wakes the bind that asked.
void admit_port(Layout& w, const PortBody& body) noexcept;
void admit_connect(Layout& w, Index index, const ConnectBody& body) noexcept;
void admit_data(Layout& w, ConnId conn, const std::byte* data, std::size_t size,
                bool ends_urgent = false) noexcept;
void admit_shutdown(Layout& w, ConnId conn) noexcept;
void admit_reset(Layout& w, ConnId conn) noexcept;
void admit_window(Layout& w, ConnId conn, std::uint64_t total) noexcept;
// `bodies`: TakenBody, one after another.
void admit_taken(Layout& w, std::span<const std::byte> bodies) noexcept;
// START: connections of an earlier view are reset, in connection order (rule 7).
void reset_connections(Layout& w, Resets which) noexcept;

Readiness connection_readiness(const Layout& w, const FileRecord& file) noexcept;

}  // namespace crane::dmt
