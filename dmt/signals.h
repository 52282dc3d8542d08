// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual signals of processes and threads (DESIGN D11, rule 14).
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Marks `signo` pending for a process or for one thread.  For a process, the lowest slot that does
// not block the signal is interrupted if it waits.  An ignored signal is dropped.  A standard
// signal (below 32) is pending once, with the details of the first sender; a real-time signal as
// often as it was sent.  False: the table of queued signals is full and nothing was sent (only for
// SI_QUEUE: return EAGAIN).
//
// A detached slot is alive: it takes its signals when it rejoins.
inline bool is_alive(const SlotRecord& s) noexcept {
  return s.state == SlotState::kRunnable || s.state == SlotState::kWaiting ||
         s.state == SlotState::kDetached;
}
bool send_signal(Layout& w, std::uint16_t process, int signo, const SignalInfo& info = {}) noexcept;
bool send_signal_to_slot(Layout& w, Slot slot, int signo, const SignalInfo& info = {}) noexcept;
// Whether a signal of this POSIX timer is queued.
bool is_queued_by_timer(const Layout& w, std::uint32_t timer) noexcept;
// The number of signals queued for the process, as RLIMIT_SIGPENDING counts them.
std::uint32_t queued_signals(const Layout& w, std::uint16_t process) noexcept;
// Takes one signal of `set` that is pending for the slot, in Linux' order: signals of the thread
// before those of the process, signals of faults before others, then the lowest number.  0 = none.
int take_signal_of(Layout& w, Slot slot, std::uint64_t set, SignalInfo& info) noexcept;
// take_signal_of() with all signals that the slot does not block.
int take_signal(Layout& w, Slot slot, SignalInfo& info) noexcept;
int take_signal(Layout& w, Slot slot) noexcept;
// Discards what is pending of a signal that the process ignores from now on.
void discard_signal(Layout& w, std::uint16_t process, int signo) noexcept;
// Discards the signals queued for a thread or process that has ended.
void forget_signals_of_slot(Layout& w, std::uint16_t slot) noexcept;
void forget_signals_of_process(Layout& w, std::uint16_t process) noexcept;
// Threads in sigwait and readers of a signalfd block on this object.
std::uint64_t signal_object(std::uint16_t process) noexcept;
bool signal_deliverable(const Layout& w, Slot slot) noexcept;

}  // namespace crane::dmt
