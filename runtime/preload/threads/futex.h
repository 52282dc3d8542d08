// SPDX-License-Identifier: Apache-2.0
#pragma once
// futex(2) and futex_waitv(2) as operations, with the arguments and results of the kernel.
//
// Threads: any with a slot, inside Crane, without the turn.

namespace crane {

// futex(2) as an operation; returns -ENOSYS for operations that are not supported.
long futex_by_number(const long* arguments) noexcept;
// futex_waitv(2) for private words of 32 bits; returns -ENOSYS for shared words.
long futex_words_by_number(const long* arguments) noexcept;

}  // namespace crane
