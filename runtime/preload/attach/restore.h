// SPDX-License-Identifier: Apache-2.0
#pragma once
// A server that comes from a checkpoint: CRIU brings back what it knows of, and this the rest of
// what the library relies on in the kernel (README.md has the list).
//
// The node raises SchedulerState::restores before the restore.  All threads were asleep in
// dmt::await_turn() when they were saved (dmt/quiescence.h), so that looking there, and where a
// thread begins, is enough: nothing is looked at on the way out of Crane, and a call costs what it
// did.
//
// INVARIANT RESTORE-1  No thread of a restored process leaves Crane before its system calls are
//               looked at, RDTSC is a fault and the vDSO is ours again.

namespace crane {

// Once in every program, with its first turn: what was armed until now is armed since the last
// restore.  REQUIRES the turn.
void prepare_for_restores() noexcept;

}  // namespace crane
