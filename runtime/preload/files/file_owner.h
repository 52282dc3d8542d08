// SPDX-License-Identifier: Apache-2.0
#pragma once
// O_ASYNC and whom it tells: F_SETOWN and its kin, FIOASYNC.  The kernel is never asked for a
// signal: it would come at no turn (dmt/file_owners.h sends it).
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include "runtime/preload/descriptors/fd.h"

namespace crane::file_owner {

inline constexpr int kNotOfOwner = INT_MIN;

// A command of fcntl, or kNotOfOwner.
int control(Turn& turn, FileRecord& f, int command, long x) noexcept;
// A command of ioctl, or kNotOfOwner.
int device_control(Turn& turn, FileRecord& f, int fd, unsigned long command, long x) noexcept;
// O_ASYNC among the flags of F_SETFL.  As Linux, which leaves it out of kinds that tell nothing.
void set_told(FileRecord& f, int fd, bool on) noexcept;

}  // namespace crane::file_owner
