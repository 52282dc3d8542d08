// SPDX-License-Identifier: Apache-2.0
#pragma once
// Failures before the library is attached end the process, because LD_PRELOAD alone would fail
// open.

#include "dmt/base/log.h"
#include "dmt/base/raw.h"

namespace crane {

inline constexpr int kExitCannotAttach = 125;

// Writes a message and ends the process with kExitCannotAttach.
[[noreturn]] inline void give_up(const char* what, const char* object) noexcept {
  { Message() << "cannot attach: " << what << ": " << object; }
  raw_syscall(SYS_exit_group, kExitCannotAttach);
  __builtin_unreachable();
}

}  // namespace crane
