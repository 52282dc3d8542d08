// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual UDP: datagrams between the sockets of one server.  The network consists of loopback and
// one interface without peers.  So a socket receives only what the server itself sent, at turns: a
// FIFO queue per socket.
//
// Each datagram has its own blocks: a header (DatagramHeader), then its bytes.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT DMT-U1  `blocks` is the length of the list from `first` to `last`; 0 = both are 0.
// INVARIANT DMT-U2  No address in the segment is an IPv4-mapped IPv6 address; IPv4 addresses are
//               plain.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr std::size_t kDatagramMax = 65507;
// The queue limit of one socket; later datagrams are lost, as with any UDP.
inline constexpr std::uint32_t kDatagramBlocksMax = 64;

struct DatagramHeader {
  VirtualAddress from, to;
  std::uint32_t size;
  std::uint8_t hops, service;  // TTL and type of service, set by the sender
  std::uint16_t unused;
};
static_assert(kDatagramBlocksMax * kBlockBytes > 2 * (kDatagramMax + sizeof(DatagramHeader)));

// The value of a multicast group in DatagramState::groups; never 0.
std::uint32_t group_name(const VirtualAddress& group) noexcept;

// Whether another socket has the port at an overlapping address, unless both use SO_REUSEADDR.
bool datagram_port_taken(const Layout& w, std::uint32_t file, const VirtualAddress& a) noexcept;
// A free port for bind(0) and for sockets that send before they are bound; 0 = none.
std::uint16_t free_datagram_port(const Layout& w) noexcept;

// The socket that receives what `from` sends to `to`: a connected one before one with the exact
// address, before a wildcard; among equals the one bound last (as in Linux).  0 = none.
std::uint32_t find_datagram_socket(const Layout& w, const VirtualAddress& to,
                                   const VirtualAddress& from) noexcept;
// Whether `file` receives datagrams to the multicast group `to`.
bool is_in_group(const Layout& w, std::uint32_t file, const VirtualAddress& to) noexcept;

// Appends a datagram of the vectors' `header.size` bytes (<= kDatagramMax) to the queue of `file`.
// Drops it silently if the queue is full.
void put_datagram(Layout& w, std::uint32_t file, const DatagramHeader& header,
                  const struct iovec* vectors) noexcept;

// The header of the oldest datagram.  REQUIRES: there is one (DatagramState::first != 0).
DatagramHeader first_datagram(const Layout& w, std::uint32_t file) noexcept;
// Copies up to `size` bytes of the oldest datagram from `offset` on; returns how many.
std::size_t peek_datagram(const Layout& w, std::uint32_t file, std::size_t offset, std::byte* out,
                          std::size_t size) noexcept;
void take_datagram(Layout& w, std::uint32_t file) noexcept;

// Called when the last reference drops.
void drop_datagrams(Layout& w, std::uint32_t file) noexcept;

Readiness datagram_readiness(const Layout& w, const FileRecord& f) noexcept;

}  // namespace crane::dmt
