// SPDX-License-Identifier: Apache-2.0
#pragma once
// Locks on files (flock, record locks of processes and of open files): the kernel keeps them, and
// who has to wait does so in the scheduler.
//
// A waiter names the process that is in its way, as far as the kernel tells; so a circle of them is
// seen (EDEADLK), and it looks again when that process releases anything.  Now and then it looks
// without a reason, for a lock may go with the last copy of a descriptor.
//
// A lock outlives the call that took it in ways that a process does not see: over exec, with the
// copies that fork and messages make of a descriptor.  So one process that locks (file_locks in the
// segment) makes every process of the server close at a turn.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include "runtime/preload/descriptors/fd.h"

namespace crane::file_lock {

// fcntl's F_SETLK, F_SETLKW, F_OFD_SETLK and F_OFD_SETLKW; `x` is the struct flock.
int record(Turn& turn, int fd, int command, long x) noexcept;
int whole_file(Turn& turn, int fd, int how) noexcept;  // flock

// Descriptors were closed: locks may have gone with them.
void may_have_gone(dmt::Layout& w) noexcept;

// This process ends: its locks go now, at a turn, and not when the kernel comes to it.  Afterwards
// only the standard descriptors and Crane's own are open.
void end_of_process(dmt::Layout& w) noexcept;

}  // namespace crane::file_lock
