// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that wait for the disk and change nothing that a program can observe (fsync and the like):
// the others go on while such a call lasts, in serial mode too (wrap_flush.cc).
//
// INVARIANT FLUSH-1  The schedule does not depend on how long it lasts: the caller goes to the tail
//               of the run queue, where it stays runnable and so holds up quiescence (rule 3), and
//               whoever passes it the turn waits for it.
// INVARIANT FLUSH-2  A descriptor is neither closed nor replaced while a call of this process uses
//               it.
//
// Threads: the caller holds the turn; forget_flushes() in a child of fork, before it has others.

namespace crane {

// Waits until no other thread of this process flushes a descriptor in [first, last].
void await_flushes(int first, int last) noexcept;

// The other threads are not here.
void forget_flushes() noexcept;

}  // namespace crane
