// SPDX-License-Identifier: Apache-2.0
#pragma once
// TCP connections that the server opens to others.  connect() gives the connection its number and
// tells the nodes (OutputType::kConnect); the leader's opens it, and CONNECTED brings the outcome.
// From there on it is a connection as any other (connections.h).
//
//   kSocket -- begin_connect() --> kConnection, connecting -- CONNECTED 0 --> kConnection
//      ^----- CONNECTED error, give_up_connect() -----'
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT OUTBOUND-1  Each kConnect is followed by one kClose of the same number: when the
// attempt
//               has failed or was given up, or when the server closes the connection.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// `file` (kSocket) connects to `peer`; `from`: as OutboundRequest::local.
void begin_connect(Layout& w, std::uint32_t file, const VirtualAddress& peer,
                   const VirtualAddress& from) noexcept;

// shutdown(2) ends an attempt: `file` is a socket again, which has been reset.
void give_up_connect(Layout& w, std::uint32_t file) noexcept;

// CONNECTED.
void admit_connected(Layout& w, const ConnectedBody& body) noexcept;

}  // namespace crane::dmt
