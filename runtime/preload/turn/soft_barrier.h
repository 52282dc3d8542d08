// SPDX-License-Identifier: Apache-2.0
#pragma once
// Soft barriers before long computations (PARROT; CRANE section 7.4, rule 13).
//
// The barriers of hints/crane.h belong to a process: a child of fork has its parent's barriers as
// they were set up, without threads in them. The barriers of functions (soft_barrier_point.h)
// belong to the replica and are in the segment.
//
// Threads: see each function.

#include <cstdint>

#include "dmt/layout.h"

namespace crane {

// Waits, as one operation, until l.count threads have come, l.timeout_us of virtual time have
// passed, or no other thread can come. `object` is the object that they wait for. REQUIRES a slot,
// that no turn is held, and that the caller is inside Crane.
void soft_barrier(dmt::SoftBarrier& l, std::uint64_t object) noexcept;

// Called in a child of fork before it has other threads. REQUIRES the turn.
void forget_soft_barriers() noexcept;

}  // namespace crane
