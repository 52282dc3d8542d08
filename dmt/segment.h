// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creates and attaches the segment.  Attaching has named states, so that each failure has its own
// message.
//
// Processes: the node creates it (proxy/host, over Boost.Interprocess); all others attach.

#include <cstddef>

#include "dmt/layout.h"

namespace crane::dmt {

// Fills a zeroed mapping of sizeof(Layout) bytes and publishes it (DMT-L2: version last).
Layout& initialise_segment(void* memory, const Configuration& configuration) noexcept;

enum class Attach { kReady, kAbsent, kCreating, kWrongVersion, kTooSmall, kSystem };

struct Attached {
  Attach state;
  Layout* layout;               // valid when kReady
  std::uint32_t found_version;  // valid when kWrongVersion
};

// The report of a server process to its node after its birth, fork or exec.  The node learns the
// pid outside the container from SO_PEERCRED.
struct CheckIn {
  std::uint32_t version;  // kLayoutVersion
  std::uint32_t process;
  std::uint32_t pid;
};

// Maps the segment of the open descriptor `fd`.
Attached attach_segment(int fd) noexcept;

}  // namespace crane::dmt
