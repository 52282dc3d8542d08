// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client's TCP connection on another host: what its socket there needs, and how it is made
// (TCP_REPAIR; NETWORK N6, N8).
//
// All replicas know the two streams of bytes.  CONNECT adds four numbers of TCP (TcpStart).  With
// them a socket is made that continues where the other host's was, and the client's kernel takes it
// for the same one.
//
// Needs CAP_NET_ADMIN.  IPv4 only, like the address that moves.  Threads: the node's one thread.
// Errors: Result; the connection cannot be moved.

#include <cstdint>
#include <span>
#include <vector>

#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"
#include "proxy/replica/clients/client_socket.h"

namespace crane::proxy {

// The sequence numbers of both sides' first bytes, from the kernel's SYN-ACK.
struct Handshake {
  std::uint32_t sent = 0, received = 0;
};

// `clock`: milliseconds that increase from one leader to the next even if their hosts' clocks
// differ, so that the client takes no segment of a new leader for an old one (RFC 7323, PAWS).
Result<TcpStart> tcp_start_of(const ClientSocket& socket, const Handshake& handshake,
                              std::uint32_t clock);

struct SocketMove {
  TcpStart start;
  VirtualAddress local, peer;         // addresses of the host, not those that the server sees
  std::uint64_t received = 0;         // the client's bytes, and its FIN as one
  std::uint64_t put = 0;              // the server's bytes that the client has acknowledged
  std::span<const std::byte> output;  // what was written after those: the client may have it or not
};
// Makes a socket after `output`, so that the client may acknowledge any part of it, and probes the
// client for how much it has.
Result<ClientSocket> make_socket(const SocketMove& move, std::uint32_t clock);
// Repeats the probe: a client answers one probe per half second, and a probe may be lost.
void ask_again(const ClientSocket& socket) noexcept;
// How many segments of the client have arrived; one or more mean that it has answered.  Then
// leave_silently() returns what the client lacks: a socket is made again after what it has, and
// sends the rest as new data.  The first socket would treat that as lost, and send it slowly.
std::uint32_t segments_of(const ClientSocket& socket) noexcept;

// Closes a connection whose socket another host has now, without a packet to the client.  Returns
// the bytes that the client had not acknowledged.
std::vector<std::byte> leave_silently(ClientSocket socket);

}  // namespace crane::proxy
