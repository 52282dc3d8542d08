// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server's connections, where they say what the log does not: of a server whose processes
// recover from a checkpoint, how far it had come with them; of a new leader's, which are lost.
//
// Threads: the node's one thread.

#include "dmt/layout.h"
#include "proxy/clients/proxy.h"

namespace crane::node {

// Before the first entry behind the checkpoint.
void recover_clients(const dmt::Layout& layout, proxy::Proxy& proxy);

// This replica begins to lead: connections of its server that the proxy does not know get a RESET
// entry.  The server may run meanwhile; one that it closes now ignores that.
void reset_lost_clients(const dmt::Layout& layout, proxy::Proxy& proxy);

}  // namespace crane::node
