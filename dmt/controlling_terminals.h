// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pseudo-terminals and sessions, as Linux has it: which terminal controls a process, whose group is
// in the foreground, and the signals that terminals send.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT TTY-3  A terminal with a session controls processes of that session only, and a process
//               names the terminal as its own only while the terminal has its session.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

bool leads_session(const Layout& w, std::uint16_t process) noexcept;

// The terminal controls the session of `process`, whose group is in the foreground.
// REQUIRES: the process leads a session without a terminal, the terminal has no session.
void become_controlling(Layout& w, std::uint16_t process, std::uint16_t terminal) noexcept;
// The terminal has no session any more, nor have those processes it.
void release_session(Layout& w, std::uint16_t terminal) noexcept;
// The process has no controlling terminal any more; when it leads a session none of that has, and
// the group in the foreground gets SIGHUP.  `ends`: because the process ends.
void leave_terminal(Layout& w, std::uint16_t process, bool ends) noexcept;
// The master is closed.
void hang_up_session(Layout& w, std::uint16_t terminal) noexcept;

// Whether a process in the background may use its terminal; else `signo` (SIGTTIN, SIGTTOU) was
// sent to its group, or nothing would come of that.
enum class Permission : std::uint8_t { kGranted, kSignalled, kRefused };
Permission ask_terminal(Layout& w, Slot me, std::uint16_t terminal, int signo) noexcept;

// What TIOCSPGRP changes: 0 or a negative error number.
int set_foreground(Layout& w, std::uint16_t process, std::uint16_t terminal,
                   std::int32_t group) noexcept;

// To each process of the group; none when it is 0.
void signal_group(Layout& w, std::uint32_t group, int signo) noexcept;

}  // namespace crane::dmt
