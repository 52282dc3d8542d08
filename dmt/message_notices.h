// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which process mq_notify notifies when a message arrives at an empty POSIX message queue: at most
// one per queue, once.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT NOTICE-1  At most one notice is registered for a queue.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr std::uint32_t kNoNotice = UINT32_MAX;

// The registered notice of the queue, or kNoNotice.
std::uint32_t find_notice(const Layout& w, std::uint64_t object) noexcept;
// Registers a notice like `like`; kNoNotice: the table is full.  REQUIRES: the queue has none.
std::uint32_t add_notice(Layout& w, const MessageNotice& like) noexcept;
// Cancels the registration of `process` for the queue.
void remove_notice(Layout& w, std::uint64_t object, std::uint16_t process) noexcept;
// Called when the process ends.
void remove_notices(Layout& w, std::uint16_t process) noexcept;
// A message has arrived: sends the notice with `sender` and its value, and ends the registration.
void fire_notice(Layout& w, std::uint64_t object, SignalInfo sender) noexcept;

// --- for the thread of a Notify::kThread notice --------------------------------------------------

bool is_registered(const Layout& w, std::uint32_t notice, std::uint32_t generation) noexcept;
bool has_fired(const Layout& w, std::uint32_t notice, std::uint32_t generation) noexcept;
// The thread waits on this object.
std::uint64_t notice_object(std::uint32_t notice) noexcept;

}  // namespace crane::dmt
