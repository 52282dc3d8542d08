// SPDX-License-Identifier: Apache-2.0
#pragma once
// Soft barriers before long computations (PARROT; CRANE section 7.4, rule 13).
//
// Those of hints/crane.h are a process' own: a child of fork has its parent's as they were set up,
// and no thread in them.  Those of functions (soft_barrier_point.h) are the replica's, in the
// segment.
//
// Threads: as said.

#include <cstdint>

#include "dmt/layout.h"

namespace crane {

// Waits, as one operation, until l.count threads have come, l.timeout_us of virtual time have
// passed, or no other can come.  `object` is what they wait for.  REQUIRES a slot, that no turn
// is held, and that the caller is inside Crane.
void soft_barrier(dmt::SoftBarrier& l, std::uint64_t object) noexcept;

// REQUIRES the turn; in a child of fork, before it has others.
void forget_soft_barriers() noexcept;

}  // namespace crane
