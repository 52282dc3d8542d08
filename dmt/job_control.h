// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stopping and continuing processes: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU and SIGCONT act as
// operations at turns (POSIX "signal concepts", 2.4.3; DESIGN D11, rule 14).  The kernel never
// stops a process for them.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT JOB-1  A thread of a stopped process ends no operation: while it has the turn, it waits
//               for continue_object (runtime/preload/turn/turn.cc).
// INVARIANT JOB-2  waitpid can report at most one of a process' last stop and continuation: the
//               later.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

bool is_stop_signal(int signo) noexcept;

inline bool is_stopped(const Layout& w, std::uint16_t process) noexcept {
  return w.processes[process].stopped_by != 0;
}

// Performs the default action of a stop signal and notifies the parent.  In an orphaned group,
// which no shell could continue, only SIGSTOP stops a process.
void stop_process(Layout& w, std::uint16_t process, int signo) noexcept;

// The effects of a signal when it is sent, whatever happens to it later.  SIGCONT continues the
// process and removes pending stop signals; stop signals remove a pending SIGCONT; SIGKILL
// continues.
void act_on_sending(Layout& w, std::uint16_t process, int signo) noexcept;

// The threads of a stopped process wait on this object.
std::uint64_t continue_object(std::uint16_t process) noexcept;

// Whether no shell could continue the group.
bool is_orphaned(const Layout& w, std::uint32_t group) noexcept;

// `process` is about to end: each group that it leaves orphaned with a stopped member gets SIGHUP
// and SIGCONT.
void hang_up_orphans(Layout& w, std::uint16_t process) noexcept;

}  // namespace crane::dmt
