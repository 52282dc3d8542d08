// SPDX-License-Identifier: Apache-2.0
#pragma once
// Handles a process or thread that the kernel refuses to create (rule 17).
//
// Threads: any.

namespace crane {

// Returns if a limit that the program set for itself may be the reason: all replicas reach it, so
// the caller reports the error to the program. Otherwise only this machine lacks resources, so the
// replica is fenced and the others continue.
void fence_unless_own_limit(int error, const char* what) noexcept;

}  // namespace crane
