// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end of a process, which each room may be the cause of.  The functions are defined in
// processes/fork.cc: they clean up what the rooms between here and there keep.
//
// Threads: the calling one ends the process.

namespace crane {

// Ends this process for the schedule and then for the kernel.
[[noreturn]] void end_now(int wait_status) noexcept;
// Ends it for the kernel alone, as the default action of a signal does.
[[noreturn]] void die_by_signal(int signo) noexcept;
// wait status as of waitpid
inline constexpr int status_of_exit(int code) noexcept { return (code & 0xff) << 8; }
inline constexpr int status_of_signal(int signo) noexcept { return signo; }

}  // namespace crane
