// SPDX-License-Identifier: Apache-2.0
#pragma once
// What libc learns of the machine for itself: a stream's buffer is as large as a file system's
// block, qsort() and malloc() ask for the memory and the processors.  These calls go from libc to
// libc and pass no stub of ours, so the functions that answer them begin with a jump to ours.
//
// They answer while libc holds locks of its own, so they take no turn; and a thread may have lost
// the turn between two operations, at another instruction on each replica.  So they tell only what
// is the same everywhere at once: a file's device, number and times stay the kernel's, and nothing
// is noted.  libc compares these; a program sees them in what nftw() and fts_read() hand out.
//
// INVARIANT RT-V1  After take_over_libc_view() each function of its table begins with the jump, in
//                  every process and thread, or a message has said that this libc cannot be
//                  changed.
//
// Threads: once, in the constructor, before there is a second thread.

namespace crane {

void take_over_libc_view() noexcept;

}  // namespace crane
