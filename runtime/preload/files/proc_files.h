// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a program reads below /proc of itself and of its machine: its memory, its processor time,
// the load.  The kernel's answers are each replica's own, so these files are written again at each
// opening, as the constant machine of wrap_host.cc would tell them, and a process of a constant
// size.
//
// Threads: REQUIRES the turn.

#include "runtime/preload/turn/turn.h"

namespace crane {

// A descriptor of the file that stands for `path`, the kernel's -errno, or kNotOurs.
inline constexpr long kNotOurs = 1L << 40;
long open_proc_file(Turn& turn, const char* path, int flags) noexcept;

}  // namespace crane
