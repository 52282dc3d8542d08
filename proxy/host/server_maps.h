// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory maps of a process, for the names of places in its code.
//
// Threads: any.

#include <sys/types.h>

#include <string>

#include "dmt/base/read_text.h"

namespace crane::node {

// /proc/PID/maps; empty: there is no such process.
inline std::string maps_of(pid_t pid) {
  return text_of_file("/proc/" + std::to_string(pid) + "/maps");
}

}  // namespace crane::node
