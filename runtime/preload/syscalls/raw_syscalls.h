// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of system calls by number (system_calls.def), for syscall(2) and for calls that
// bypass libc (system_call_trap.h).

#include "runtime/preload/trap/system_call.h"

namespace crane {

const SystemCall& system_call(long number) noexcept;

}  // namespace crane
