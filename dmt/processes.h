// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server's processes in the schedule: creation, exit, wait and signals are operations at turns,
// never the kernel's asynchronous events (DESIGN D11, D18, rules 2, 14, 15).
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT DMT-P1  A process in state kAlive has between 1 and kSlotsMax live slots.
// INVARIANT DMT-P2  `gone` is set at the turn at which the process ends for the schedule, before
//               the kernel ends it; a process that dies without it fences the replica (rule 2).

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"
#include "dmt/process_table.h"
#include "dmt/signals.h"

namespace crane::dmt {

// Creates the record of a child of `parent` with one slot (its main thread, runnable) and copies of
// the descriptor table and dispositions.  Returns kNoProcess if a table is full (return EAGAIN).
struct Child {
  std::uint16_t process;
  Slot slot;
};
Child create_process(Layout& w, std::uint16_t parent) noexcept;
// Undoes create_process after a failed fork.
void abandon_process(Layout& w, std::uint16_t process) noexcept;

// The first process, created by the node before the server starts: kMainProcess with its slot.
Slot create_main_process(Layout& w) noexcept;

// Ends the process (exit, fatal signal): ends its slots and descriptors, sends SIGCHLD to the
// parent, wakes waiters, and gives its children to the process that collects orphans.  The caller
// then passes the turn with leave().  `wait_status` as in waitpid.
void end_process(Layout& w, std::uint16_t process, std::int32_t wait_status) noexcept;

// The events of a child that waitpid can report.
enum ChildEvent : unsigned { kChildEnded = 1, kChildStopped = 2, kChildContinued = 4 };
// The child for waitpid: pid > 0 that process, -1 any, 0 own group, < -1 group -pid.  Among
// children with one of `events`, the lowest record wins.  `child` 0 and `exists` false = ECHILD.
struct WaitChoice {
  std::uint16_t child;
  unsigned event;       // a ChildEvent
  std::int32_t status;  // as in waitpid
  bool exists;
};
WaitChoice find_child(const Layout& w, std::uint16_t parent, std::int32_t pid,
                      unsigned events) noexcept;
// Consumes a stop or continue event: each is reported once.
void take_stop_event(Layout& w, std::uint16_t process) noexcept;
// Whether a pidfd (FileKind::kProcess) belongs to this process, which has not been waited for.
bool names_process(const Layout& w, const FileRecord& file, std::uint16_t process) noexcept;
// Frees the zombie's record and adds its processor time to its parent.
void reap_process(Layout& w, std::uint16_t process) noexcept;

}  // namespace crane::dmt
