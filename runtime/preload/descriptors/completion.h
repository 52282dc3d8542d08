// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a program is told that a request that it did not wait for is done (aio, getaddrinfo_a).
//
// Threads: any; not within a turn: a thread may be started.

#include "runtime/preload/ground/operations.h"
#include "runtime/preload/ground/types.h"

namespace crane {

// `code`: si_code of a signal.  An error number.
int notify_done(Op op, const struct sigevent& e, int code) noexcept;

}  // namespace crane
