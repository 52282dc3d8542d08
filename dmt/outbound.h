// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connections that the server opens to others, by TCP or to a unix socket or a FIFO of the host.
// connect() gives the connection its number and tells the nodes (OutputType::kConnect); the
// leader's opens it, and CONNECTED brings the outcome. From there on it is a connection as any
// other (connections.h).
//
//   kSocket -- begin_connect() --> kConnection, connecting -- CONNECTED 0 --> kConnection
//      ^----- CONNECTED error, give_up_connect() -----'
//
// A unix socket is kUnixSocket before, and again after an attempt that failed.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT OUTBOUND-1  Each kConnect is followed by one kClose of the same number: when the
// attempt
//               has failed or was given up, or when the server closes the connection.

#include <cstdint>
#include <string_view>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// `file` (kSocket) connects to `peer`; `from`: as OutboundRequest::local.
void begin_connect(Layout& w, std::uint32_t file, const VirtualAddress& peer,
                   const VirtualAddress& from) noexcept;

// `file` (kUnixSocket) connects to the socket of the host at `path`, which has at most
// kSocketPathBytes.  REQUIRES: fits(w, kSocketPathBytes).
void begin_unix_connect(Layout& w, std::uint32_t file, std::string_view path) noexcept;

// `file` (kUnixSocket) becomes the reading end of the FIFO of the host at `path`.  As
// begin_unix_connect(), but for what a failed attempt leaves: a FIFO at its end, with socket_error.
void begin_fifo_open(Layout& w, std::uint32_t file, std::string_view path) noexcept;

// The path that a connection, or an attempt, was opened by; "": it is of TCP.
std::string_view socket_path(const Layout& w, const ConnectionState& c) noexcept;

// shutdown(2) ends an attempt: `file` is a socket again, which has been reset.
void give_up_connect(Layout& w, std::uint32_t file) noexcept;

// CONNECTED.
void admit_connected(Layout& w, const ConnectedBody& body) noexcept;

}  // namespace crane::dmt
