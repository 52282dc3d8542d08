// SPDX-License-Identifier: Apache-2.0
#pragma once
// futex(2) and futex_waitv(2) as operations, with the arguments and results of the kernel.
//
// Threads: any with a slot, inside of Crane, holding no turn.

namespace crane {

// futex(2) as an operation (futex.cc); operations that are not supported are -ENOSYS.
long futex_by_number(const long* arguments) noexcept;
// futex_waitv(2), of private words of 32 bits; shared ones are -ENOSYS.
long futex_words_by_number(const long* arguments) noexcept;

}  // namespace crane
