// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files below /proc about the program and its machine: memory, processor time, load. The kernel's
// values differ between replicas. So each opening gets a new file that describes the constant
// machine of wrap_host.cc and a process of a constant size.
//
// Threads: REQUIRES the turn.

#include "runtime/preload/turn/turn.h"

namespace crane {

// Returns a descriptor of the file that replaces `path`, the kernel's -errno, or kNotOurs.
inline constexpr long kNotOurs = 1L << 40;
long open_proc_file(Turn& turn, const char* path, int flags) noexcept;

}  // namespace crane
