// SPDX-License-Identifier: Apache-2.0
#pragma once
// A server that is restored from a checkpoint: CRIU restores what it knows, and this code restores
// the rest of the kernel state on which the library relies (README.md has the list).
//
// The node raises SchedulerState::restores before the restore. All threads were asleep in
// dmt::await_turn() when they were saved (dmt/quiescence.h). So a check there, and where a thread
// begins, is enough; leaving Crane needs no check, and calls cost no more.
//
// INVARIANT RESTORE-1  No thread of a restored process leaves Crane before its system calls are
//     checked, RDTSC is a fault and the vDSO is ours again.

namespace crane {

// Called once in every program, with its first turn: what is armed now counts as armed since the
// last restore. REQUIRES the turn.
void prepare_for_restores() noexcept;

}  // namespace crane
