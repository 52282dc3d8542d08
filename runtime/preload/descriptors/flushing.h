// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that wait for the disk and change nothing that a program can observe (fsync and the like).
// The other threads continue during such a call, in serial mode too (wrap_flush.cc).
//
// INVARIANT FLUSH-1  The schedule does not depend on the duration of the call. The caller goes to
//     the tail of the run queue and stays runnable, so it prevents quiescence (rule 3); when its
//     turn comes, the schedule waits until the call has returned.
// INVARIANT FLUSH-2  A descriptor is neither closed nor replaced while a call of this process uses
//     it.
//
// Threads: the caller holds the turn; forget_flushes(): in a child of fork while it has one thread.

namespace crane {

// Waits until no other thread of this process flushes a descriptor in [first, last].
void await_flushes(int first, int last) noexcept;

// Clears the marks in a child of fork, which does not have the other threads.
void forget_flushes() noexcept;

}  // namespace crane
