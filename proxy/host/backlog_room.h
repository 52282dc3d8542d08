// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the server's listen queues take, read from the segment without the turn.  A CONNECT that
// finds its queue full is refused on all replicas, which resets the client; natively it waits in
// the kernel's queue.  So the leader proposes no more of them than fit, and leaves the others
// there.
//
// Threads: the node's.

#include <cstdint>
#include <vector>

#include "dmt/layout.h"
#include "proxy/replica/clients/clients.h"
#include "proxy/replica/status/serving_watch.h"

namespace crane::node {

// Of several listeners on a port (SO_REUSEPORT) the fullest one's; no limit where none listens.
proxy::BacklogSpace backlog_room(dmt::Layout& w, std::uint16_t port) noexcept;
// The listening sockets of the server, as they are now.
std::vector<replica::ListenQueue> listen_queues(dmt::Layout& w);

}  // namespace crane::node
