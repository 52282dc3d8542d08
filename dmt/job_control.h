// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stopping and continuing processes: what SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU and SIGCONT do, as
// operations at turns (POSIX "signal concepts", 2.4.3; DESIGN D11, rule 14).  The kernel never
// stops a process for them.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT JOB-1  A thread of a stopped process ends no operation: with the turn in its hand it
//               waits for continue_object (runtime/preload/turn/turn.cc).
// INVARIANT JOB-2  At most one of a process' stop and its continuing can be waited for: the later.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

bool is_stop_signal(int signo) noexcept;

inline bool is_stopped(const Layout& w, std::uint16_t process) noexcept {
  return w.processes[process].stopped_by != 0;
}

// The default action of a stop signal; the parent learns of it.  None but SIGSTOP stops a process
// of an orphaned group, which no shell could continue.
void stop_process(Layout& w, std::uint16_t process, int signo) noexcept;

// What a signal does as it is sent, whatever becomes of it later: SIGCONT continues the process and
// takes pending stop signals away, these take a pending SIGCONT away, SIGKILL continues.
void act_on_sending(Layout& w, std::uint16_t process, int signo) noexcept;

// The threads of a stopped process wait on this object.
std::uint64_t continue_object(std::uint16_t process) noexcept;

// Whether no shell could continue the group.
bool is_orphaned(const Layout& w, std::uint32_t group) noexcept;

// `process` is about to end: groups that it leaves orphaned with a stopped member get SIGHUP and
// SIGCONT.
void hang_up_orphans(Layout& w, std::uint16_t process) noexcept;

}  // namespace crane::dmt
