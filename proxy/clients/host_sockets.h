// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sockets of this host's kernel.
//
// Threads: any; one per socket.

#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"
#include "proxy/replica/clients/client_socket.h"

namespace crane::proxy {

SocketCalls& host_sockets() noexcept;
// Takes over `fd`, a connected non-blocking stream socket; -1: none.
ClientSocket host_socket(int fd) noexcept;

// As ClientSocket::id; 0 on kernels without SO_COOKIE.
SocketId socket_id(int fd) noexcept;

// Sets the options of all sockets of clients and to other hosts; accepted sockets inherit them from
// the listening one.  Urgent bytes stay in the stream, so they are counted and kept like others;
// peek() finds their mark.
void set_stream_options(int fd) noexcept;

// Accepts a client that waits at the listening socket `fd`, and returns its address; -1, with
// errno: none waits.
int accept_client(int fd, VirtualAddress& peer) noexcept;

// The two ends of a connected or bound socket.
VirtualAddress peer_of(int fd) noexcept;
VirtualAddress local_of(int fd) noexcept;

}  // namespace crane::proxy
