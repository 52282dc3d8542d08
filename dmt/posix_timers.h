// SPDX-License-Identifier: Apache-2.0
#pragma once
// Process timers in virtual time: alarms, interval timers, timer_create, and processor clocks
// (DESIGN D6, rule 14).
//
// Processor clocks follow the schedule.  The virtual time that an admission brings while a thread
// is runnable counts for the thread that had the turn last, like a tick of a clock interrupt. Time
// that passes while all threads wait counts for none.  The real processor time differs from replica
// to replica, and no thread can read it.
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Handles an alarm or interval timer of the process that has fired.
void alarm_expired(Layout& w, std::uint16_t process) noexcept;

// --- timer_create --------------------------------------------------------------------------------

inline constexpr std::uint32_t kNoPosixTimer = UINT32_MAX;
// Creates an unarmed timer like `like`.  Returns kNoPosixTimer if none is free (return EAGAIN).
std::uint32_t create_posix_timer(Layout& w, const PosixTimer& like) noexcept;
void delete_posix_timer(Layout& w, std::uint32_t timer) noexcept;
void delete_posix_timers(Layout& w, std::uint16_t process) noexcept;
// Null: the process has no such timer.
PosixTimer* find_posix_timer(Layout& w, std::uint16_t process, std::uint32_t timer) noexcept;
// `due_ns`: a virtual monotonic time, or a reading of the processor clock; 0 disarms.
void set_posix_timer(Layout& w, std::uint32_t timer, std::int64_t due_ns,
                     std::int64_t interval_ns) noexcept;
// Time until it is due; 0 = not armed.
std::int64_t time_left(const Layout& w, const PosixTimer& t) noexcept;
// Called when its deadline has passed.
void posix_timer_expired(Layout& w, std::uint32_t timer) noexcept;
// Called when its signal is delivered; fills in the overruns.
void timer_signal_taken(Layout& w, SignalInfo& info) noexcept;
// Takes the notification of an expired Notify::kThread timer of the process; kNoPosixTimer: none.
std::uint32_t take_thread_notification(Layout& w, std::uint16_t process) noexcept;
// The thread that creates the threads of Notify::kThread timers blocks on this object.
std::uint64_t notification_object(std::uint16_t process) noexcept;

// --- processor clocks ----------------------------------------------------------------------------

// Adds `ns` of processor time to the slot, and expires the timers that it makes due.
void use_processor(Layout& w, std::uint16_t slot, std::int64_t ns) noexcept;

}  // namespace crane::dmt
