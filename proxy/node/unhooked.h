// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a replica's server called past libcrane.so, in words (dmt/unhooked.h has the counts).
//
// Threads: any; plain values.

#include <cstdint>
#include <string>
#include <vector>

#include "dmt/layout.h"

namespace crane::node {

struct Unhooked {
  std::string call, object, outcome;
  std::uint64_t offset = 0;  // behind the instruction, in the object
  std::uint64_t count = 0;
};

// The first few, in the order of their first call.
std::vector<Unhooked> unhooked_calls(const dmt::Layout& layout);

// The call at which strict mode stopped the replica; empty: it did not.
std::string unhooked_reason(const dmt::Layout& layout);

}  // namespace crane::node
