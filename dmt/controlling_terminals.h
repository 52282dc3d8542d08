// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pseudo-terminals and sessions as in Linux: the controlling terminal of a process, the foreground
// group, and the signals that terminals send.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT TTY-3  A terminal with a session controls processes of that session only.  A process
//               refers to the terminal only while the terminal has its session.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

bool leads_session(const Layout& w, std::uint16_t process) noexcept;

// Makes the terminal control the session of `process`, with its group in the foreground. REQUIRES:
// the process leads a session without a terminal, and the terminal has no session.
void become_controlling(Layout& w, std::uint16_t process, std::uint16_t terminal) noexcept;
// Ends the terminal's control of its session and of the processes in it.
void release_session(Layout& w, std::uint16_t terminal) noexcept;
// Ends the process' use of its controlling terminal.  If it leads a session, the whole session
// loses the terminal, and the foreground group gets SIGHUP.  `ends`: the process is ending.
void leave_terminal(Layout& w, std::uint16_t process, bool ends) noexcept;
// Called when the master is closed.
void hang_up_session(Layout& w, std::uint16_t terminal) noexcept;

// Whether a background process may use its terminal.  kSignalled: its group got `signo` (SIGTTIN,
// SIGTTOU).  kRefused: the signal would have no effect.
enum class Permission : std::uint8_t { kGranted, kSignalled, kRefused };
Permission ask_terminal(Layout& w, Slot me, std::uint16_t terminal, int signo) noexcept;

// TIOCSPGRP.  Returns 0 or a negative error number.
int set_foreground(Layout& w, std::uint16_t process, std::uint16_t terminal,
                   std::int32_t group) noexcept;

// Sends the signal to each process of the group; 0 means no group.
void signal_group(Layout& w, std::uint32_t group, int signo) noexcept;

}  // namespace crane::dmt
