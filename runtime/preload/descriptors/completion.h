// SPDX-License-Identifier: Apache-2.0
#pragma once
// Notifies the program that an asynchronous request has completed (aio, getaddrinfo_a).
//
// Threads: any thread, but not within a turn, because it may start a thread.

#include "runtime/preload/ground/operations.h"
#include "runtime/preload/ground/types.h"

namespace crane {

// `code`: si_code of the signal. Returns an error number.
int notify_done(Op op, const struct sigevent& e, int code) noexcept;

}  // namespace crane
