// SPDX-License-Identifier: Apache-2.0
#pragma once
// What becomes of a process or a thread that the kernel refuses (rule 17).
//
// Threads: any.

namespace crane {

// Comes back where a limit that the program set for itself may be the reason, which all replicas
// run into: the program is told.  Else this machine lacks what the others may have, so that the
// replica is fenced: the others go on.
void fence_unless_own_limit(int error, const char* what) noexcept;

}  // namespace crane
