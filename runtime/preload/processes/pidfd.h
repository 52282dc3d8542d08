// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptors that refer to processes.
//
// Threads: REQUIRES the turn.

#include "runtime/preload/descriptors/fd.h"

namespace crane {

// Returns the process that a pidfd names; -EBADF: not a pidfd, -ESRCH: the process was reaped.
int process_of_descriptor(const dmt::Layout& w, int fd, bool& nonblocking) noexcept;

}  // namespace crane
