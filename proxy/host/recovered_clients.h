// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the server's connections from the segment for what the log does not contain: the progress
// of a server's connections when it recovers from a checkpoint, and the connections that a new
// leader has lost.
//
// Threads: the node's one thread.

#include "dmt/layout.h"
#include "proxy/clients/proxy.h"

namespace crane::node {

// REQUIRES: no entry after the checkpoint was delivered yet.
void recover_clients(const dmt::Layout& layout, proxy::Proxy& proxy);

// Call when this replica begins to lead.  Proposes a RESET entry for each connection of its server
// that the proxy does not know.  The server may run at the same time; a connection that it has
// closed ignores the RESET.
void reset_lost_clients(const dmt::Layout& layout, proxy::Proxy& proxy);

}  // namespace crane::node
