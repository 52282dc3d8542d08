// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of processes.
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr std::uint16_t kNoProcess = 0;  // record 0 is the node's; as a parent it means init
inline constexpr std::uint16_t kMainProcess = 1;

// The process with this pid, or kNoProcess.
std::uint16_t find_process(const Layout& w, std::uint32_t pid) noexcept;
// Waiters in waitpid block on this object.
std::uint64_t child_object(std::uint16_t parent) noexcept;

}  // namespace crane::dmt
