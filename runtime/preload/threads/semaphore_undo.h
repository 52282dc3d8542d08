// SPDX-License-Identifier: Apache-2.0
#pragma once
// Crane implements SEM_UNDO of System V semaphores. The kernel would undo at the real end of the
// process, outside a turn, and the next thread to take the semaphore would race with it.
//
// Threads: REQUIRES the turn.

#include "dmt/layout.h"

namespace crane {

// Undoes what this process did with SEM_UNDO and wakes the waiters (wrap_queue.cc).
void end_semaphore_undo(dmt::Layout& w) noexcept;

}  // namespace crane
