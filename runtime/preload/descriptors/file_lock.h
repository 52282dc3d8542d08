// SPDX-License-Identifier: Apache-2.0
#pragma once
// Locks on files (flock, record locks of processes and of open files). The kernel keeps the locks.
// A thread that must wait for one waits in the scheduler.
//
// A waiter records the process that blocks it, if the kernel reports one. With this record Crane
// detects a circle of waiters (EDEADLK), and the waiter tries again when that process releases any
// lock. It also tries at intervals, because a lock may be released with the last copy of a
// descriptor.
//
// A lock may outlive the call that took it without the process noticing: over exec, and in the
// descriptor copies that fork and messages make. So once one process locks a file (file_locks in
// the segment), every process of the server closes descriptors at a turn.
//
// Threads: REQUIRES the turn. Results: a value or a negative error number (fd.h).

#include "runtime/preload/descriptors/fd.h"

namespace crane::file_lock {

// fcntl's F_SETLK, F_SETLKW, F_OFD_SETLK and F_OFD_SETLKW; `x` is the struct flock.
int record(Turn& turn, int fd, int command, long x) noexcept;
int whole_file(Turn& turn, int fd, int how) noexcept;  // flock

// Wakes the waiters after descriptors were closed, because locks may have been released with them.
void wake_lock_waiters(dmt::Layout& w) noexcept;

// Releases the locks of this process at a turn before it ends; otherwise the kernel would release
// them at some later moment. Afterwards only the standard descriptors and Crane's own are open.
void end_of_process(dmt::Layout& w) noexcept;

}  // namespace crane::file_lock
