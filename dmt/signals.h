// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual signals of processes and threads (DESIGN D11, rule 14).
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Marks `signo` pending for a process (lowest slot that does not block it is interrupted if it
// waits) or for one thread.  Ignored dispositions drop it.  A standard signal (below 32) is pending
// once, with the first sender's particulars; a real-time signal as often as it was sent.  False:
// the table of queued signals is full and nothing was sent (only for SI_QUEUE: answer EAGAIN).
//
// A detached slot is alive: it takes its signals when it is back.
inline bool is_alive(const SlotRecord& s) noexcept {
  return s.state == SlotState::kRunnable || s.state == SlotState::kWaiting ||
         s.state == SlotState::kDetached;
}
bool send_signal(Layout& w, std::uint16_t process, int signo, const SignalInfo& info = {}) noexcept;
bool send_signal_to_slot(Layout& w, Slot slot, int signo, const SignalInfo& info = {}) noexcept;
// Whether a signal of this POSIX timer is queued.
bool is_queued_by_timer(const Layout& w, std::uint32_t timer) noexcept;
// How many are queued for the process, RLIMIT_SIGPENDING's count.
std::uint32_t queued_signals(const Layout& w, std::uint16_t process) noexcept;
// A signal of `set` that is pending for the slot, taken off, in Linux' order: the thread's own
// before the process', what a fault causes before others, then the lowest.  0 = none.
int take_signal_of(Layout& w, Slot slot, std::uint64_t set, SignalInfo& info) noexcept;
// The same of those that the slot does not block.
int take_signal(Layout& w, Slot slot, SignalInfo& info) noexcept;
int take_signal(Layout& w, Slot slot) noexcept;
// The process ignores the signal from now on: what is pending of it goes.
void discard_signal(Layout& w, std::uint16_t process, int signo) noexcept;
// What was queued for a thread or a process that has ended.
void forget_signals_of_slot(Layout& w, std::uint16_t slot) noexcept;
void forget_signals_of_process(Layout& w, std::uint16_t process) noexcept;
// Threads in sigwait and readers of a signalfd block on this object.
std::uint64_t signal_object(std::uint16_t process) noexcept;
bool signal_deliverable(const Layout& w, Slot slot) noexcept;

}  // namespace crane::dmt
