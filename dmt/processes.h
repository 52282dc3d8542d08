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
#include "dmt/process_table.h"
#include "dmt/signals.h"

namespace crane::dmt {

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
// A stop, or the end of one, is told once.
void take_stop_event(Layout& w, std::uint16_t process) noexcept;
// Whether a pidfd (FileKind::kProcess) is of this process, and that has not been waited for.
bool names_process(const Layout& w, const FileRecord& file, std::uint16_t process) noexcept;
// The zombie's record is free after this; its parent has used what it has used.
void reap_process(Layout& w, std::uint16_t process) noexcept;

}  // namespace crane::dmt
