// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptors that name processes.
//
// Threads: REQUIRES the turn.

#include "runtime/preload/descriptors/fd.h"

namespace crane {

// The process that a pidfd names; -EBADF: it is none, -ESRCH: the process has been waited for.
int process_of_descriptor(const dmt::Layout& w, int fd, bool& nonblocking) noexcept;

}  // namespace crane
