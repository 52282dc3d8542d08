// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server's processes as the schedule knows them: creation, exit, wait and signals are
// operations at turns, never the kernel's asynchronous events (DESIGN D11, D18, rules 2, 14, 15).
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT DMT-P1  A process in state kAlive has between 1 and kSlotsMax live slots.
// INVARIANT DMT-P2  `gone` is set at the turn at which the process ends for the schedule, before
//               the kernel ends it; a process that dies without it fences the replica (rule 2).

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr std::uint16_t kNoProcess = 0;  // record 0 is the node's; init, as a parent
inline constexpr std::uint16_t kMainProcess = 1;

// Creates the record of a child of `parent` with one slot (its main thread, runnable), a copy of
// the descriptor table and of the dispositions.  kNoProcess when a table is full (answer EAGAIN).
struct Child {
  std::uint16_t process;
  Slot slot;
};
Child create_process(Layout& w, std::uint16_t parent) noexcept;
// fork failed after create_process: nothing remains.
void abandon_process(Layout& w, std::uint16_t process) noexcept;

// The first process, created by the node before the server starts: kMainProcess with its slot.
Slot create_main_process(Layout& w) noexcept;

// The process ends (exit, fatal signal): slots, descriptors, SIGCHLD to the parent, waiters woken,
// children handed to who collects orphans.  The caller then passes the turn with leave().
// `wait_status` as of waitpid.
void end_process(Layout& w, std::uint16_t process, std::int32_t wait_status) noexcept;

// What waitpid can tell of a child.
enum ChildEvent : unsigned { kChildEnded = 1, kChildStopped = 2, kChildContinued = 4 };
// waitpid's choice: pid > 0 that one, -1 any, 0 own group, < -1 group -pid.  The lowest record wins
// of which one of `events` can be told.  `child` 0 and `exists` false = ECHILD.
struct WaitChoice {
  std::uint16_t child;
  unsigned event;       // a ChildEvent
  std::int32_t status;  // as of waitpid
  bool exists;
};
WaitChoice find_child(const Layout& w, std::uint16_t parent, std::int32_t pid,
                      unsigned events) noexcept;
// Waiters in waitpid block on this object.
std::uint64_t child_object(std::uint16_t parent) noexcept;
// A stop, or the end of one, is told once.
void take_stop_event(Layout& w, std::uint16_t process) noexcept;
// Whether a pidfd (FileKind::kProcess) is of this process, and that has not been waited for.
bool names_process(const Layout& w, const FileRecord& file, std::uint16_t process) noexcept;
// The zombie's record is free after this; its parent has used what it has used.
void reap_process(Layout& w, std::uint16_t process) noexcept;

std::uint16_t find_process(const Layout& w, std::uint32_t pid) noexcept;

// --- signals -----------------------------------------------------------------------------------

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
