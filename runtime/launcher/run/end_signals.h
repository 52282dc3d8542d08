// SPDX-License-Identifier: Apache-2.0
#pragma once
// The signals that end a group: SIGINT, SIGTERM and SIGHUP.  A SIGHUP that this process inherited
// as ignored (nohup) stays ignored, so the group survives the end of its terminal.
//
// Threads: plain functions.

#include <csignal>

namespace crane::launcher {

// SIGHUP is in the set unless it is ignored.  A blocked signal is delivered to a signalfd even if
// it is ignored, so block only these.
sigset_t end_signals();

// Why the group ends, as a static text for a message.
const char* why_it_ends(int signo);

// The message for SIGHUP.
inline constexpr char kHungUp[] =
    "the terminal was closed (SIGHUP), so the group ends; to keep a group, start it with --detach "
    "or "
    "nohup";

}  // namespace crane::launcher
