// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual UDP: datagrams between the sockets of one server.  There is no network but loopback and
// one interface that leads nowhere, so what a socket receives is a function of what the server
// itself has sent, at turns: a queue per socket, first in, first out.
//
// A datagram lies in blocks of its own: a header (DatagramHeader), then its bytes.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT DMT-U1  `blocks` is the length of the list from `first` to `last`; 0 = both are 0.
// INVARIANT DMT-U2  No address in the segment is an IPv4 address in an IPv6 one's form: they are
//               plain.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr std::size_t kDatagramMax = 65507;
// What may wait at one socket; what comes when that is used up is lost, as with any UDP.
inline constexpr std::uint32_t kDatagramBlocksMax = 64;

struct DatagramHeader {
  VirtualAddress from, to;
  std::uint32_t size;
  std::uint8_t hops, service;  // TTL and type of service, as the sender has set them
  std::uint16_t unused;
};
static_assert(kDatagramBlocksMax * kBlockBytes > 2 * (kDatagramMax + sizeof(DatagramHeader)));

// How a multicast group is remembered in DatagramState::groups; never 0.
std::uint32_t group_name(const VirtualAddress& group) noexcept;

// Whether another socket has the port at an overlapping address, without SO_REUSEADDR of both.
bool datagram_port_taken(const Layout& w, std::uint32_t file, const VirtualAddress& a) noexcept;
// A free port for bind(0) and for sockets that send before they are bound; 0 = none.
std::uint16_t free_datagram_port(const Layout& w) noexcept;

// The socket that gets what `from` sends to `to`: a connected one before one of the very address,
// before a wildcard; of equals the one bound last has it (Linux too).  0 = none.
std::uint32_t find_datagram_socket(const Layout& w, const VirtualAddress& to,
                                   const VirtualAddress& from) noexcept;
// Whether `file` gets what is sent to the multicast group `to`.
bool is_in_group(const Layout& w, std::uint32_t file, const VirtualAddress& to) noexcept;

// A new datagram of the vectors' `header.size` bytes (<= kDatagramMax) for `file`, at the end of
// its queue. Lost without a word when the queue is full.
void put_datagram(Layout& w, std::uint32_t file, const DatagramHeader& header,
                  const struct iovec* vectors) noexcept;

// REQUIRES: one waits (DatagramState::first != 0).
DatagramHeader first_datagram(const Layout& w, std::uint32_t file) noexcept;
// Up to `size` of the first one's bytes from `offset` on; how many.
std::size_t peek_datagram(const Layout& w, std::uint32_t file, std::size_t offset, std::byte* out,
                          std::size_t size) noexcept;
void take_datagram(Layout& w, std::uint32_t file) noexcept;

// The last reference goes.
void drop_datagrams(Layout& w, std::uint32_t file) noexcept;

Readiness datagram_readiness(const Layout& w, const FileRecord& f) noexcept;

}  // namespace crane::dmt
