// SPDX-License-Identifier: Apache-2.0
#pragma once
// Processor time and memory of processes with all their descendants.
//
// Threads: plain values; read_processes() reads /proc.

#include <sys/types.h>

#include <map>

#include "dmt/base/process_stat.h"

namespace crane::launcher {

using Processes = std::map<pid_t, ProcessStat>;

// All processes of this machine, except those that end meanwhile.
Processes read_processes();
// The process, with the times and memory of all its descendants added.
ProcessStat tree_of(const Processes& all, pid_t pid);

}  // namespace crane::launcher
