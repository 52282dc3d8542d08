// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creating and attaching the segment.  Attaching is a state machine with names: what
// can go wrong is told apart, so that each has its own message.
//
// Processes: the node creates (proxy/host, over Boost.Interprocess); all others attach.

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

// What a process of the server tells its node when it is born, forked or has executed another
// program; the node learns the pid outside of the container by SO_PEERCRED.
struct CheckIn {
  std::uint32_t version;  // kLayoutVersion
  std::uint32_t process;
  std::uint32_t pid;
};

// Maps the segment of the open descriptor `fd`.
Attached attach_segment(int fd) noexcept;

}  // namespace crane::dmt
