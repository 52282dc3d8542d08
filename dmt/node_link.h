// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connects a thread with the replica's node: the doorbell, the output ring, and the stop of a
// replica that may not continue.
//
// Threads / Processes: the setters once per process, before it has a second thread; ring_doorbell()
// and fence() by any thread; the output ring REQUIRES the turn.

#include <cstdint>
#include <span>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr Slot kNodeSlot{0};
inline constexpr Slot kNoSlot{kNone};
inline constexpr std::int64_t kNoDeadline = INT64_MAX;

inline bool has_turn(const Layout& w, Slot me) noexcept {
  return w.scheduler.holder.load(std::memory_order_acquire) == value(me);
}

// --- the doorbell and the output ring ------------------------------------------------------------

// Rings the node's doorbell if the node sleeps.  The runtime (or a test) sets it; null = none.
using Doorbell = void (*)() noexcept;
void set_doorbell(Doorbell ring) noexcept;
void ring_doorbell(Layout& w) noexcept;

// Publishes a record in the output ring: reserve, fill, commit.  While the ring is full it waits
// physically, never logically (D12).
std::span<std::byte> reserve_output(Layout& w, std::uint32_t bytes) noexcept;
void commit_output(Layout& w, std::uint32_t bytes) noexcept;
// Commits a record that no client waits for: does not wake the node, which finds it when it looks
// next.
void commit_quietly(Layout& w, std::uint32_t bytes) noexcept;

// --- the end of a replica  -----------------------------------------------------------------------

// A thread of a fenced replica calls stop_here() and does not return.  It calls the handler of its
// process (the node ends with a message); in a server it sleeps until the node kills it.
using FenceHandler = void (*)() noexcept;
void set_fence_handler(FenceHandler handler) noexcept;
[[noreturn]] void stop_here(Layout& w) noexcept;

// Stops the replica at this point (rule 17, D18): no thread continues, and the node is notified.
[[noreturn]] void fence(Layout& w, const char* why) noexcept;
// fence() for a request of the server that the machine refuses before the request had any effect.
// Everything that this replica did is correct, so other replicas may continue with its clients.
[[noreturn]] void fence_refused(Layout& w, const char* why) noexcept;
inline constexpr std::uint32_t kFencedWrong = 1, kFencedRefused = 2;  // SchedulerState::fenced

}  // namespace crane::dmt
