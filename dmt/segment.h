// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creating and attaching the segment.  Attaching is a state machine with names (STYLE R14): what
// can go wrong is told apart, so that each has its own message.
//
// Processes: the node creates (proxy/node, over Boost.Interprocess); everybody attaches.

#include <cstddef>

#include "dmt/base/result.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Fills a zeroed mapping of sizeof(Layout) bytes and publishes it (L2: version last).
Layout& initialise_segment(void* memory, const Configuration& configuration) noexcept;

enum class Attach { kReady, kAbsent, kCreating, kWrongVersion, kTooSmall, kSystem };

struct Attached {
  Attach state;
  Layout* layout;               // valid when kReady
  std::uint32_t found_version;  // valid when kWrongVersion
};

// Maps the segment of the open descriptor `fd`.
Attached attach_segment(int fd) noexcept;

}  // namespace crane::dmt
