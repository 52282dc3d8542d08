// SPDX-License-Identifier: Apache-2.0
#include "dmt/datagrams.h"

#include <algorithm>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/blocks.h"
#include "dmt/connections.h"
#include "dmt/files.h"

namespace crane::dmt {
namespace {

constexpr std::uint16_t kFamilyV4 = 2, kFamilyV6 = 10;
constexpr std::uint16_t kFirstFreePort = 32768;
// Input of connections has priority: datagrams use at most half of all blocks.
constexpr std::uint32_t kAllBlocksMax = kBlocksMax / 2;

constinit Bound datagrams_bound{kAllBlocksMax, "blocks of unread input", "datagrams are dropped"};

// Whether a socket with this binding can receive datagrams to addresses of `family`.
bool accepts_family(const DatagramState& d, std::uint16_t family) noexcept {
  if (d.bound.family == family) return true;
  return d.bound.family == kFamilyV6 && family == kFamilyV4 && is_wildcard(d.bound) && !d.only_v6;
}

// How well a socket fits; 0 = not at all.
unsigned fitness(const DatagramState& d, const VirtualAddress& to,
                 const VirtualAddress& from) noexcept {
  if (d.bound.port != to.port || !accepts_family(d, to.family)) return 0;
  if (!is_wildcard(d.bound) && !same_ip(d.bound, to)) return 0;
  const unsigned fit = is_wildcard(d.bound) ? 1 : 2;
  if (d.peer.family == 0) return fit;
  return d.peer.port == from.port && same_ip(d.peer, from) ? fit + 2 : 0;
}

std::uint32_t blocks_of(std::size_t size) noexcept {
  return static_cast<std::uint32_t>((sizeof(DatagramHeader) + size + kBlockBytes - 1) /
                                    kBlockBytes);
}

// Appends a block to the socket's queue and returns it.
std::byte* add_block(Layout& w, DatagramState& d) noexcept {
  const std::uint32_t block = allocate_block(w);
  (d.last != 0 ? w.block_next[d.last] : d.first) = block;
  d.last = block;
  ++d.blocks;
  return block_bytes(w, block);
}

}  // namespace

std::uint32_t group_name(const VirtualAddress& group) noexcept {
  std::uint32_t name = 0x811C9DC5;
  for (const std::uint8_t byte : group.ip) name = (name ^ byte) * 0x01000193;
  return name | 1;
}

bool datagram_port_taken(const Layout& w, std::uint32_t file, const VirtualAddress& a) noexcept {
  const DatagramState& own_state = w.files[file].datagram;
  for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
    const DatagramState& d = w.files[i].datagram;
    if (i == file || w.files[i].kind != FileKind::kDatagram || d.bound.port != a.port) continue;
    const bool related = d.bound.family == a.family ||
                         (is_wildcard(d.bound) && accepts_family(d, a.family)) ||
                         (a.family == kFamilyV6 && is_wildcard(a) && !own_state.only_v6);
    const bool overlap = related && (is_wildcard(d.bound) || is_wildcard(a) || same_ip(d.bound, a));
    if (overlap && !(d.reuses && own_state.reuses)) return true;
  }
  return false;
}

std::uint16_t free_datagram_port(const Layout& w) noexcept {
  const auto taken = [&w](std::uint16_t port) {
    for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
      if (w.files[i].kind == FileKind::kDatagram && w.files[i].datagram.bound.port == port) {
        return true;
      }
    }
    return false;
  };
  std::uint16_t port = kFirstFreePort;
  while (port != 0 && taken(port)) ++port;
  return port;
}

std::uint32_t find_datagram_socket(const Layout& w, const VirtualAddress& to,
                                   const VirtualAddress& from) noexcept {
  std::uint32_t found = 0;
  unsigned best = 1;
  for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
    if (w.files[i].kind != FileKind::kDatagram) continue;
    const unsigned fit = fitness(w.files[i].datagram, to, from);
    if (fit < best) continue;
    best = fit;
    found = i;
  }
  return found;
}

bool is_in_group(const Layout& w, std::uint32_t file, const VirtualAddress& to) noexcept {
  if (w.files[file].kind != FileKind::kDatagram) return false;
  const DatagramState& d = w.files[file].datagram;
  if (d.bound.port != to.port || !accepts_family(d, to.family)) return false;
  if (!is_wildcard(d.bound) && !same_ip(d.bound, to)) return false;
  const std::uint32_t name = group_name(to);
  return std::find(std::begin(d.groups), std::end(d.groups), name) != std::end(d.groups);
}

void put_datagram(Layout& w, std::uint32_t file, const DatagramHeader& header,
                  const struct iovec* vectors) noexcept {
  const std::size_t size = header.size;
  CRANE_ASSERT(w.files[file].kind == FileKind::kDatagram && size <= kDatagramMax);
  DatagramState& d = w.files[file].datagram;
  const std::uint32_t needed = blocks_of(size);
  const std::uint32_t all = w.scheduler.blocks_in_use.load(std::memory_order_relaxed);
  if (d.shut_read || d.blocks + needed > kDatagramBlocksMax) return;
  if (all + needed > kAllBlocksMax) return datagrams_bound.count_refusal();
  std::byte* to = add_block(w, d);
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  std::size_t room = kBlockBytes - sizeof header;
  for (std::size_t done = 0, at = 0; done < size;) {
    if (room == 0) {
      to = add_block(w, d);
      room = kBlockBytes;
    }
    const std::size_t n = std::min(vectors->iov_len - at, room);
    std::memcpy(to, static_cast<const std::byte*>(vectors->iov_base) + at, n);
    to += n;
    room -= n;
    done += n;
    at += n;
    if (at < vectors->iov_len) continue;
    ++vectors;
    at = 0;
  }
  refresh_readiness(w, file, true);
}

DatagramHeader first_datagram(const Layout& w, std::uint32_t file) noexcept {
  const DatagramState& d = w.files[file].datagram;
  CRANE_ASSERT(d.first != 0);
  DatagramHeader header;
  std::memcpy(&header, block_bytes(w, d.first), sizeof header);
  return header;
}

std::size_t peek_datagram(const Layout& w, std::uint32_t file, std::size_t offset, std::byte* out,
                          std::size_t size) noexcept {
  const DatagramHeader header = first_datagram(w, file);
  const std::size_t end = std::min<std::size_t>(offset + size, header.size);
  std::uint32_t block = w.files[file].datagram.first;
  std::size_t begin = 0;  // of this block's bytes, in the datagram
  std::size_t skipped = sizeof header;
  std::size_t done = 0;
  while (offset + done < end) {
    const std::size_t there = kBlockBytes - skipped;
    const std::size_t at = offset + done;
    if (at < begin + there) {
      const std::size_t n = std::min(end - at, begin + there - at);
      std::memcpy(out + done, block_bytes(w, block) + skipped + (at - begin), n);
      done += n;
    }
    begin += there;
    skipped = 0;
    block = w.block_next[block];
  }
  return done;
}

void take_datagram(Layout& w, std::uint32_t file) noexcept {
  DatagramState& d = w.files[file].datagram;
  for (std::uint32_t n = blocks_of(first_datagram(w, file).size); n > 0; --n) {
    const std::uint32_t following = w.block_next[d.first];
    free_block(w, d.first);
    d.first = following;
    --d.blocks;
  }
  if (d.first == 0) d.last = 0;
  CRANE_ASSERT((d.first == 0) == (d.blocks == 0));  // DMT-U1
  refresh_readiness(w, file, false);
}

void drop_datagrams(Layout& w, std::uint32_t file) noexcept {
  while (w.files[file].datagram.first != 0) take_datagram(w, file);
}

Readiness datagram_readiness(const Layout&, const FileRecord& f) noexcept {
  const DatagramState& d = f.datagram;
  const bool readable = d.first != 0 || d.shut_read || d.error != 0;
  return kOut | (readable ? kIn : 0) | (d.error != 0 ? kErr : 0) | (d.shut_read ? kRdHup : 0);
}

}  // namespace crane::dmt
