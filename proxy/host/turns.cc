// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/turns.h"

#include <algorithm>
#include <atomic>

#include "dmt/tuning.h"

namespace crane::node {
namespace {

// The oldest turn that is not being overwritten: the record of the turn after `clock` may already
// be in its place, and one more if the clock is about to be stored.
std::uint64_t oldest_whole(const dmt::Layout& w) noexcept {
  const std::uint64_t next = __atomic_load_n(&w.scheduler.clock, __ATOMIC_ACQUIRE) + 2;
  return next < dmt::kTurnHistory ? 1 : next + 1 - dmt::kTurnHistory;
}

}  // namespace

RecentTurns recent_turns(const dmt::Layout& w, std::uint64_t last) {
  RecentTurns recent;
  recent.first = oldest_whole(w);
  for (std::uint64_t n = recent.first; n <= last; ++n) {
    recent.turns.push_back(w.turns[n % dmt::kTurnHistory]);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t lost =
      std::min<std::uint64_t>(oldest_whole(w) - recent.first, recent.turns.size());
  recent.turns.erase(recent.turns.begin(),
                     recent.turns.begin() + static_cast<std::ptrdiff_t>(lost));
  recent.first += lost;
  return recent;
}

}  // namespace crane::node
