// SPDX-License-Identifier: Apache-2.0
#pragma once
// O_ASYNC and the process that it signals: F_SETOWN and similar, FIOASYNC. The kernel is never set
// to send the signal, because it would do so outside a turn (dmt/file_owners.h sends it).
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include "runtime/preload/descriptors/fd.h"

namespace crane::file_owner {

inline constexpr int kNotOfOwner = INT_MIN;

// Handles a command of fcntl, or returns kNotOfOwner.
int control(Turn& turn, FileRecord& f, int command, long x) noexcept;
// Handles a command of ioctl, or returns kNotOfOwner.
int device_control(Turn& turn, FileRecord& f, int fd, unsigned long command, long x) noexcept;
// Sets O_ASYNC for F_SETFL. As Linux, it ignores kinds of files that send no signal.
void set_async(FileRecord& f, int fd, bool on) noexcept;

}  // namespace crane::file_owner
