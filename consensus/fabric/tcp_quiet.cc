// SPDX-License-Identifier: Apache-2.0
// TcpFabric: detects links that have gone quiet (link_quiet.h).
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "consensus/fabric/tcp.h"

namespace crane::consensus {

namespace {

constexpr std::uint64_t kUs = 1'000, kMs = 1'000'000;
// If a timer is served this late, the process waited for a processor.
constexpr std::uint64_t kLateNs = 20 * kMs;

LinkState state_of(int fd) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  // Without a route the bytes are not even sent.
  return {info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0, info.tcpi_last_ack_recv * kMs,
          info.tcpi_rtt * kUs, info.tcpi_total_retrans};
}

}  // namespace

bool TcpFabric::was_late() const noexcept {
  return timer_.set_ns() != 0 && now_ns_ > timer_.set_ns() + kLateNs;
}

// Called after all arrived bytes were processed.
void TcpFabric::look_for_quiet_links(bool was_late) noexcept {
  for (Peer& p : peers_) {
    const Connection* const connection =
        p.connections[static_cast<std::size_t>(tcp::Plane::kBackground)];
    if (!p.up || connection == nullptr) continue;
    if (was_late) p.quiet.resume(now_ns_);
    switch (p.quiet.step(now_ns_)) {
      case LinkQuiet::Step::kNothing:
        break;
      case LinkQuiet::Step::kAsk:
        put(p, tcp::Plane::kBackground, {0, tcp::FrameKind::kPing, tcp::kProbe, 0, ++p.sequence});
        break;
      case LinkQuiet::Step::kLook:
        p.quiet.look(state_of(connection->link->fd()), now_ns_);
        break;
    }
  }
}

void TcpFabric::note_losses() noexcept {
  for (Peer& p : peers_) {
    const Connection* const connection =
        p.connections[static_cast<std::size_t>(tcp::Plane::kBackground)];
    if (p.up && connection != nullptr) p.quiet.note(state_of(connection->link->fd()), now_ns_);
  }
}

std::uint64_t TcpFabric::quiet_due_ns() const noexcept {
  std::uint64_t due = LinkQuiet::kNever;
  for (const Peer& p : peers_) {
    if (p.up) due = std::min(due, p.quiet.due_ns());
  }
  return due;
}

}  // namespace crane::consensus
