// SPDX-License-Identifier: Apache-2.0
#pragma once
// Free room in the server's listen queues, read from the segment without the turn.  A CONNECT that
// finds its queue full is refused on all replicas, which resets the client; natively the client
// waits in the kernel's queue.  So the leader proposes only as many connections as fit and leaves
// the others in the kernel's queue.
//
// Threads: the node's.

#include <cstdint>
#include <vector>

#include "dmt/layout.h"
#include "proxy/replica/clients/clients.h"
#include "proxy/replica/status/serving_watch.h"

namespace crane::node {

// If several listeners share the port (SO_REUSEPORT), the room of the fullest.  No limit without
// listeners.
proxy::BacklogSpace backlog_room(dmt::Layout& w, std::uint16_t port) noexcept;
// The server's listening sockets and the current state of their queues.
std::vector<replica::ListenQueue> listen_queues(dmt::Layout& w);

}  // namespace crane::node
