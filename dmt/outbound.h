// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connections that the server opens to others, by TCP or to a unix socket or a FIFO of the host.
// connect() assigns the connection's number and notifies the nodes (OutputType::kConnect).  The
// leader's node opens it, and CONNECTED brings the result. Then it is like any other connection
// (connections.h).
//
//   kSocket -- begin_connect() --> kConnection, connecting -- CONNECTED 0 --> kConnection
//      ^----- CONNECTED error, give_up_connect() -----'
//
// A unix socket is kUnixSocket before, and again after a failed attempt.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT OUTBOUND-1  Each kConnect is followed by one kClose of the same number: when the
//               attempt fails or is given up, or when the server closes the connection.

#include <cstdint>
#include <string_view>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Connects `file` (kSocket) to `peer`; `from`: as OutboundRequest::local.
void begin_connect(Layout& w, std::uint32_t file, const VirtualAddress& peer,
                   const VirtualAddress& from) noexcept;

// Connects `file` (kUnixSocket) to the host's socket at `path`, of at most kSocketPathBytes.
// REQUIRES: fits(w, kSocketPathBytes).
void begin_unix_connect(Layout& w, std::uint32_t file, std::string_view path) noexcept;

// Makes `file` (kUnixSocket) the reading end of the host's FIFO at `path`.  Like
// begin_unix_connect(), except that a failed attempt leaves a FIFO at its end, with socket_error.
void begin_fifo_open(Layout& w, std::uint32_t file, std::string_view path) noexcept;

// The path by which a connection or an attempt was opened; "": TCP.
std::string_view socket_path(const Layout& w, const ConnectionState& c) noexcept;

// shutdown(2) ends an attempt: `file` is a socket again, in the state after a reset.
void give_up_connect(Layout& w, std::uint32_t file) noexcept;

// CONNECTED.
void admit_connected(Layout& w, const ConnectedBody& body) noexcept;

}  // namespace crane::dmt
