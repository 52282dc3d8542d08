// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named places where a test kills the process, to check what it leaves.  The names are in
// checkpoint/fault_points.h.  In production no hook is set, and a place costs one load.
//
// Threads: the hook is set before other threads run.

namespace crane {

using FaultHook = void (*)(const char* name);
extern FaultHook fault_hook;  // null: none

inline void fault_point(const char* name) {
  if (fault_hook != nullptr) fault_hook(name);
}

}  // namespace crane
