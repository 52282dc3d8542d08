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

// As ClientSocket::id; unknown on kernels without SO_COOKIE.
SocketId socket_id(int fd) noexcept;

// What all sockets of clients and to others have; of a listening one they inherit it.  Urgent bytes
// stay in the stream, so that they are counted and kept like others; peek() finds their mark.
void set_stream_options(int fd) noexcept;

// A client that waits at the listening socket `fd`, and its address; -1, with errno: none.
int accept_client(int fd, VirtualAddress& peer) noexcept;

// Either end of a connected or bound socket.
VirtualAddress peer_of(int fd) noexcept;
VirtualAddress local_of(int fd) noexcept;

}  // namespace crane::proxy
