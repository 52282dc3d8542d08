// SPDX-License-Identifier: Apache-2.0
#pragma once
// What connects a thread with the replica's node: the doorbell, the records of the output ring, and
// the end of a replica that may not continue.
//
// Threads / Processes: the setters once per process, before it has threads; ring_doorbell() and
// fence() by any thread; the output ring REQUIRES the turn.

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

// Rings the node's doorbell if it sleeps.  Set by the runtime (and by tests); null = none.
using Doorbell = void (*)() noexcept;
void set_doorbell(Doorbell ring) noexcept;
void ring_doorbell(Layout& w) noexcept;

// Publishes the output ring's record to the node: reserve, fill, publish (D12: waits physically,
// never logically, while the ring is full).
std::span<std::byte> reserve_output(Layout& w, std::uint32_t bytes) noexcept;
void commit_output(Layout& w, std::uint32_t bytes) noexcept;
// The same for what no client waits for: the node finds it when it looks the next time.
void commit_quietly(Layout& w, std::uint32_t bytes) noexcept;

// --- the end of a replica  -----------------------------------------------------------------------

// What a thread of a fenced replica does instead of going on: the handler of this process (the node
// ends itself with a message), or, in a server, sleeping for ever until the node kills it.
using FenceHandler = void (*)() noexcept;
void set_fence_handler(FenceHandler handler) noexcept;
[[noreturn]] void stop_here(Layout& w) noexcept;

// Stops the replica where it is (rule 17, D18): no thread goes on, the node is told.
[[noreturn]] void fence(Layout& w, const char* why) noexcept;
// The same where the machine refuses what the server asked for, before anything came of it: all
// that this replica did until then is right, so that others may go on with its clients.
[[noreturn]] void fence_refused(Layout& w, const char* why) noexcept;
inline constexpr std::uint32_t kFencedWrong = 1, kFencedRefused = 2;  // SchedulerState::fenced

}  // namespace crane::dmt
