// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attaching the library to its replica: environment, segment, descriptors of our own, check-in.
// Whatever is wrong ends the process with status 125 and a message (LD_PRELOAD alone fails open).
//
// Environment: CRANE_SEGMENT = path of the segment file; after exec also CRANE_SEGMENT_FD,
// CRANE_SLOT, CRANE_PROCESS and CRANE_EVEN (an even number of them).  Without CRANE_SEGMENT the
// library does nothing.
//
// Descriptors of our own live at the end of the allowed range, the same on every replica (D13).

#include <cstdint>

#include "dmt/layout.h"

namespace crane {

inline constexpr int kExitCannotAttach = 125;

// dmt::CheckIn to the node.
void check_in(std::uint16_t process) noexcept;

// The application neither sees nor closes these.
int own_descriptor_base() noexcept;
inline constexpr int kOwnDescriptors = 5;        // segment, doorbell, messages, directory, spare
inline constexpr int kCounterDescriptors = 200;  // behind them: branch counters, one for a thread
int own_descriptor_end() noexcept;
inline bool is_own_descriptor(int fd) noexcept {
  const int base = own_descriptor_base();
  return base > 0 && fd >= base && fd < own_descriptor_end();
}

// Once per replica: what the node needs to name operations.  REQUIRES the turn.
void publish_operation_names() noexcept;

// The environment of a program that takes over `slot` and `process` by exec: `given` without what
// is ours, and ours.  `out` has room for count + kOwnVariables + 1 pointers.
inline constexpr int kOwnVariables = 6;
static_assert(kOwnVariables % 2 == 0);  // hide_own_variables
void build_environment(char* const* given, char** out, std::uint16_t slot,
                       std::uint16_t process) noexcept;

}  // namespace crane
