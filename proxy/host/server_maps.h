// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory maps of a process, for the names of places in its code.
//
// Threads: any.

#include <sys/types.h>

#include <fstream>
#include <iterator>
#include <string>

namespace crane::node {

// /proc/PID/maps; empty: there is no such process.
inline std::string maps_of(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  return {std::istreambuf_iterator<char>(maps), {}};
}

}  // namespace crane::node
