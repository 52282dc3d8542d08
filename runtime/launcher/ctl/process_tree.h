// SPDX-License-Identifier: Apache-2.0
#pragma once
// What processes of this machine use, with all that they have started.
//
// Threads: plain values; read_processes() reads /proc.

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace crane::launcher {

struct ProcessUse {
  pid_t parent = 0;
  double cpu_seconds = 0;  // of its threads
  std::uint64_t resident_bytes = 0;
};
using Processes = std::map<pid_t, ProcessUse>;

// Those that are there; one that ends meanwhile is left out.
Processes read_processes();
// The sum over a process and its descendants; parent is that of `pid`.
ProcessUse tree_of(const Processes& all, pid_t pid);

}  // namespace crane::launcher
