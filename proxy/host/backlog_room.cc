// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/backlog_room.h"

#include <algorithm>
#include <atomic>

namespace crane::node {
namespace {

// The turn holder may write the word at the same time: the value can be slightly old.
std::uint32_t now(std::uint32_t& word) noexcept {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

}  // namespace

proxy::BacklogSpace backlog_room(dmt::Layout& w, std::uint16_t port) noexcept {
  // Read first: entries admitted from now on are counted twice at worst.
  proxy::BacklogSpace room{w.scheduler.applied_index.load(std::memory_order_acquire), UINT64_MAX};
  std::uint32_t f = now(w.scheduler.listeners);
  // If the list changes during the walk, its links may form a circle.
  for (std::uint32_t i = 0; f != 0 && f < dmt::kFilesMax && i < dmt::kFilesMax; ++i) {
    dmt::ListenerState& l = w.files[f].listener;
    if (l.port == port) {
      const std::uint64_t all = std::uint64_t{now(l.backlog)} + 1;
      const std::uint64_t queued = now(l.queued);
      room.connections = std::min(room.connections, queued < all ? all - queued : 0);
    }
    f = now(l.next);
  }
  return room;
}

std::vector<replica::ListenQueue> listen_queues(dmt::Layout& w) {
  std::vector<replica::ListenQueue> queues;
  std::uint32_t f = now(w.scheduler.listeners);
  for (std::uint32_t i = 0; f != 0 && f < dmt::kFilesMax && i < dmt::kFilesMax; ++i) {
    dmt::ListenerState& l = w.files[f].listener;
    const std::uint32_t queued = now(l.queued);
    queues.push_back({l.port, queued, now(l.head), queued > now(l.backlog)});
    f = now(l.next);
  }
  return queues;
}

}  // namespace crane::node
