// SPDX-License-Identifier: Apache-2.0
#pragma once
// SEM_UNDO of System V semaphores is ours: the kernel would undo when it comes to the end of the
// process, at no turn, and whoever takes the semaphore next would take part in a race.
//
// Threads: REQUIRES the turn.

#include "dmt/layout.h"

namespace crane {

// Takes back what this process did with SEM_UNDO, and wakes who waits for it (wrap_queue.cc).
void end_semaphore_undo(dmt::Layout& w) noexcept;

}  // namespace crane
