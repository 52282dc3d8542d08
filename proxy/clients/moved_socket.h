// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client's TCP connection on another host: what its socket there needs, and how it is made
// (TCP_REPAIR; NETWORK N6, N8).
//
// All replicas know the two streams of bytes.  Four numbers of TCP are added to that, which CONNECT
// carries (TcpStart): with them a socket is made that stands where the other host's stood.  The
// client's kernel takes it for the same one.
//
// Needs CAP_NET_ADMIN.  IPv4 only, as the address that moves.  Threads: the node's one thread.
// Errors: Result; the connection cannot be moved.

#include <cstdint>
#include <span>
#include <vector>

#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"
#include "proxy/replica/clients/client_socket.h"

namespace crane::proxy {

// Sequence numbers of both sides' first bytes, as the kernel's SYN-ACK tells them.
struct Handshake {
  std::uint32_t sent = 0, received = 0;
};

// `clock`: milliseconds that rise from one leader to the next, whatever their hosts' clocks say, so
// that the client takes no segment of a new leader for an old one (RFC 7323, PAWS).
Result<TcpStart> tcp_start_of(const ClientSocket& socket, const Handshake& handshake,
                              std::uint32_t clock);

struct SocketMove {
  TcpStart start;
  VirtualAddress local, peer;         // of the host, not of the server's world
  std::uint64_t received = 0;         // of the client's bytes; its FIN is one
  std::uint64_t put = 0;              // of the server's bytes: the client has acknowledged these
  std::span<const std::byte> output;  // what was written behind them: it may have them, or not
};
// It stands behind `output`, so that the client may acknowledge any of it, and asks the client how
// much that is.
Result<ClientSocket> make_socket(const SocketMove& move, std::uint32_t clock);
// A client answers one question in half a second, and one may be lost.
void ask_again(const ClientSocket& socket) noexcept;
// How many segments of the client have come: it has answered when there is one.  What it lacks
// then, leave_silently() gives: a socket is made anew behind what it has, and sends the rest as it
// sends anything.  The first one would take it for lost and send it slowly.
std::uint32_t segments_of(const ClientSocket& socket) noexcept;

// Closes a connection of which another host has the socket now: the client hears nothing.  Gives
// what it had not acknowledged.
std::vector<std::byte> leave_silently(ClientSocket socket);

}  // namespace crane::proxy
