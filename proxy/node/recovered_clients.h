// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clients of a server whose processes recover from a checkpoint: its connections, as far as it
// had come with them.
//
// Threads: the node's one thread.

#include "dmt/layout.h"
#include "proxy/clients/server.h"

namespace crane::node {

// Before the first entry behind the checkpoint.
void recover_clients(const dmt::Layout& layout, proxy::Proxy& proxy);

}  // namespace crane::node
