// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values that libc itself reads from the machine: the size of a stream's buffer is a file system's
// block size, qsort() and malloc() query the memory and the processors. These calls go from libc to
// libc and pass no stub of ours, so the functions that answer them begin with a jump to ours.
//
// They run while libc holds its own locks, so they take no turn. Between two operations a thread
// may have lost the turn, at another instruction on each replica. So they return only values that
// are equal everywhere at any time: a file's device, number and times stay the kernel's, and
// nothing is recorded. libc compares these; a program sees them in the results of nftw() and
// fts_read().
//
// INVARIANT RT-V1  After take_over_libc_view() each function of its table begins with the jump, in
//     every process and thread, or a message has reported that this libc cannot be changed.
//
// Threads: once, in the constructor, before there is a second thread.

namespace crane {

void take_over_libc_view() noexcept;

}  // namespace crane
