// SPDX-License-Identifier: Apache-2.0
#pragma once
// Timers of processes in virtual time: alarms, interval timers, timer_create, and processor clocks
// (DESIGN D6, rule 14).
//
// A processor clock of the schedule: the virtual time that an admission brings while somebody is
// runnable counts for the thread that had the turn last, as a tick of a clock interrupt would; what
// passes while all wait counts for none.  What a processor really worked differs from
// replica to replica, and no thread is told of it.
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// An alarm or interval timer of the process has fired.
void alarm_expired(Layout& w, std::uint16_t process) noexcept;

// --- timer_create --------------------------------------------------------------------------------

inline constexpr std::uint32_t kNoPosixTimer = UINT32_MAX;
// A timer like the given one, not armed.  kNoPosixTimer when there is none left (answer EAGAIN).
std::uint32_t create_posix_timer(Layout& w, const PosixTimer& like) noexcept;
void delete_posix_timer(Layout& w, std::uint32_t timer) noexcept;
void delete_posix_timers(Layout& w, std::uint16_t process) noexcept;
// Null: no such timer of that process.
PosixTimer* find_posix_timer(Layout& w, std::uint16_t process, std::uint32_t timer) noexcept;
// `due_ns`: a virtual monotonic time, or a reading of the processor clock; 0 disarms.
void set_posix_timer(Layout& w, std::uint32_t timer, std::int64_t due_ns,
                     std::int64_t interval_ns) noexcept;
// How long until it is due; 0 = not armed.
std::int64_t time_left(const Layout& w, const PosixTimer& t) noexcept;
// Called when its deadline has passed.
void posix_timer_expired(Layout& w, std::uint32_t timer) noexcept;
// Its signal is delivered: fills in the overruns.
void timer_signal_taken(Layout& w, SignalInfo& info) noexcept;
// The notification of an expired Notify::kThread timer of the process, taken; kNoPosixTimer: none.
std::uint32_t take_thread_notification(Layout& w, std::uint16_t process) noexcept;
// The thread that starts the threads of Notify::kThread timers blocks on this object.
std::uint64_t notification_object(std::uint16_t process) noexcept;

// --- processor clocks ----------------------------------------------------------------------------

// `ns` of processor time were used by the slot; expires what is due by it.
void use_processor(Layout& w, std::uint16_t slot, std::int64_t ns) noexcept;

}  // namespace crane::dmt
