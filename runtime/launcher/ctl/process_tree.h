// SPDX-License-Identifier: Apache-2.0
#pragma once
// What processes of this machine use, with all that they have started.
//
// Threads: plain values; read_processes() reads /proc.

#include <sys/types.h>

#include <map>

#include "dmt/base/process_stat.h"

namespace crane::launcher {

using Processes = std::map<pid_t, ProcessStat>;

// Those that are there; one that ends meanwhile is left out.
Processes read_processes();
// The process, with the times and memory of all its descendants added.
ProcessStat tree_of(const Processes& all, pid_t pid);

}  // namespace crane::launcher
