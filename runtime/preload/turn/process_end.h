// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end of a process, which code in any folder may cause. The functions are defined in
// fork.cc and clean up the state of the folders in between.
//
// Threads: the calling one ends the process.

namespace crane {

// Ends this process for the schedule and then in the kernel.
[[noreturn]] void end_now(int wait_status) noexcept;
// Ends it in the kernel alone, as the default action of a signal does.
[[noreturn]] void die_by_signal(int signo) noexcept;
// wait status as of waitpid
inline constexpr int status_of_exit(int code) noexcept { return (code & 0xff) << 8; }
inline constexpr int status_of_signal(int signo) noexcept { return signo; }

}  // namespace crane
