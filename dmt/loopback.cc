// SPDX-License-Identifier: Apache-2.0
#include "dmt/loopback.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/blocks.h"
#include "dmt/connections.h"
#include "dmt/files.h"
#include "dmt/urgent.h"

namespace crane::dmt {
namespace {

// When this many inbound blocks are used, an end passes one block at a time.  So blocks remain for
// clients (blocks.h), and every connection makes progress.
constexpr std::uint32_t kScarceBlocks = kBlocksMax / 2;

constexpr std::uint16_t kFirstFreePort = 32768, kLastFreePort = 60999;  // as Linux' local ports

// 0 = the listener is not reached; higher = better.
unsigned fitness(const ListenerState& l, const VirtualAddress& to) noexcept {
  if (l.port != to.port) return 0;
  const bool any = (l.any_address & kWildcardAddress) != 0;
  if (l.bound.family == to.family) {
    if (std::memcmp(l.bound.ip, to.ip, sizeof to.ip) == 0) return 3;
    return any ? 2 : 0;
  }
  const bool both = l.bound.family == AF_INET6 && (l.any_address & kOnlyIpv6) == 0;
  return any && both ? 1 : 0;
}

bool has_port(const FileRecord& f, std::uint16_t port) noexcept {
  switch (f.kind) {
    case FileKind::kSocket:
    case FileKind::kListener:
      return f.listener.bound.port == port;
    case FileKind::kConnection:
      return f.connection.loopback && f.connection.local.port == port;
    default:
      return false;
  }
}

bool is_taken(const Layout& w, std::uint16_t port) noexcept {
  for (std::uint32_t f = 1; f <= w.scheduler.files_used; ++f) {
    if (has_port(w.files[f], port)) return true;
  }
  return false;
}

ConnectionState& other_end(Layout& w, const ConnectionState& c) noexcept {
  ConnectionState& other = w.files[c.other].connection;
  CRANE_ASSERT(other.loopback && c.sent - c.drained == other.received - other.consumed);
  return other;  // LOOPBACK-1
}

void make_end(Layout& w, std::uint32_t file, std::uint32_t other, const VirtualAddress& local,
              const VirtualAddress& peer) noexcept {
  FileRecord& f = w.files[file];
  f.kind = FileKind::kConnection;
  f.connection = {};
  f.connection.loopback = true;
  f.connection.other = other;
  f.connection.low_water = 1;
  f.connection.local = local;
  f.connection.peer = peer;
}

}  // namespace

std::uint32_t find_own_listener(const Layout& w, const VirtualAddress& to,
                                std::uint64_t number) noexcept {
  unsigned best = 1;
  std::uint64_t equals = 0;
  for (std::uint32_t f = w.scheduler.listeners; f != 0; f = w.files[f].listener.next) {
    const unsigned fit = fitness(w.files[f].listener, to);
    if (fit > best) equals = 0;
    if (fit >= best) ++equals;
    best = std::max(best, fit);
  }
  std::uint64_t skip = equals == 0 ? 0 : number % equals;
  for (std::uint32_t f = w.scheduler.listeners; f != 0; f = w.files[f].listener.next) {
    if (fitness(w.files[f].listener, to) == best && skip-- == 0) return f;
  }
  return 0;
}

bool has_room(const ListenerState& listener) noexcept {
  return listener.queued < listener.backlog + 1;
}

bool connect_loopback(Layout& w, Slot me, std::uint32_t file, std::uint32_t listener,
                      const VirtualAddress& local, const VirtualAddress& peer) noexcept {
  const std::uint32_t served = create_file(w, me, FileKind::kConnection);
  if (served == 0) return false;
  make_end(w, file, served, local, peer);
  make_end(w, served, file, peer, local);
  w.files[served].readiness = readiness_of(w, served);
  queue_for_accept(w, listener, served);
  refresh_readiness(w, file, true);
  return true;
}

void refuse_later(Layout& w, std::uint32_t file) noexcept {
  w.files[file].listener.connect_error = ECONNREFUSED;
  refresh_readiness(w, file, true);
}

std::uint16_t take_free_port(Layout& w) noexcept {
  std::uint16_t& next = w.scheduler.next_port;
  for (int tries = kLastFreePort - kFirstFreePort; tries >= 0; --tries) {
    if (next < kFirstFreePort || next > kLastFreePort) next = kFirstFreePort;
    const std::uint16_t port = next++;
    if (!is_taken(w, port)) return port;
  }
  return 0;
}

std::uint16_t take_listening_port(Layout& w, unsigned refused) noexcept {
  constexpr unsigned kFew = 64, kPorts = kLastFreePort - kFirstFreePort + 1;
  if (refused == 0) ++w.scheduler.next_port;
  const unsigned begin = w.scheduler.next_port % kFew;
  for (unsigned i = 0; i < kPorts; ++i) {
    const unsigned at = i < kFew ? (begin + i) % kFew : i;
    const auto port = static_cast<std::uint16_t>(kFirstFreePort + at);
    if (!is_taken(w, port) && refused-- == 0) return port;
  }
  return 0;
}

// --- for connections.cc ------------------------------------------------------------------------

std::uint64_t loopback_limit(const Layout& w) noexcept {
  const std::uint32_t used = w.scheduler.blocks_in_use.load(std::memory_order_relaxed);
  return used < kScarceBlocks ? kReceiveWindow : kBlockBytes;
}

bool has_room_at_other_end(const Layout& w, std::size_t size) noexcept {
  constexpr std::uint32_t kMost = kBlocksMax / 8 * 7;
  static constinit Bound bound{kMost, "blocks of unread input",
                               "loopback connections take no more (ENOBUFS)"};
  const bool has_room = fits(w, size, kMost);
  if (!has_room) bound.count_refusal();
  return has_room;
}

void pass_to_other_end(Layout& w, std::uint32_t file, const std::byte* data, std::size_t size,
                       bool ends_urgent) noexcept {
  ConnectionState& c = w.files[file].connection;
  if (c.other == 0) {  // closed: as Linux, the bytes vanish and a reset comes back
    reset_connection(w, file);
    return;
  }
  ConnectionState& other = other_end(w, c);
  if (other.shut_read && other.shut_write) {
    reset_connection(w, c.other);
    reset_connection(w, file);
    return;
  }
  append_input(w, other, data, size);
  c.sent += size;
  other.received += size;
  if (ends_urgent) note_urgent(w, c.other);
  refresh_readiness(w, c.other, true);
}

void note_read(Layout& w, std::uint32_t file, std::size_t size) noexcept {
  const std::uint32_t other = w.files[file].connection.other;
  if (other == 0) return;
  const bool was_full = send_space(w, other) == 0;
  w.files[other].connection.drained += size;
  refresh_readiness(w, other, was_full);
}

void pass_fin(Layout& w, std::uint32_t file) noexcept {
  const std::uint32_t other = w.files[file].connection.other;
  if (other == 0) return;
  w.files[other].connection.fin_received = true;
  refresh_readiness(w, other, true);
}

void leave_other_end(Layout& w, std::uint32_t file, bool reset) noexcept {
  const std::uint32_t other = w.files[file].connection.other;
  if (other == 0) return;
  ConnectionState& c = w.files[other].connection;
  c.other = 0;
  c.drained = c.sent;
  if (reset) {
    reset_connection(w, other);
  } else {
    c.fin_received = true;
    refresh_readiness(w, other, true);
  }
}

}  // namespace crane::dmt
