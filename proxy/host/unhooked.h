// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls of a replica's server that bypassed libcrane.so, in words (dmt/unhooked.h has the counts),
// and how often it used features that Crane does not support.
//
// Threads: any; plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "dmt/layout.h"

namespace crane::node {

struct Unhooked {
  std::string call, object, outcome;
  std::uint64_t offset = 0;  // after the instruction, in the object
  std::uint64_t count = 0;
};

// The first few, ordered by their first call.
std::vector<Unhooked> unhooked_calls(const dmt::Layout& layout);

struct UnsupportedCounts {
  std::uint64_t datagrams = 0, udp_ports = 0, sandboxes = 0;
};
UnsupportedCounts unsupported(const dmt::Layout& layout) noexcept;

// The call at which strict mode stopped the replica; empty: strict mode did not stop it.
std::string unhooked_reason(const dmt::Layout& layout);

}  // namespace crane::node
