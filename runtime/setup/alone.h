// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group of one replica in memory has nothing to recover with: it takes no checkpoints, for which
// its clients would wait.
//
// Threads: a pure function.

#include <cstddef>

#include "runtime/setup/option_table.h"

namespace crane::setup {

inline bool alone_in_memory(std::size_t replicas, const NodeOptions& options) {
  return replicas == 1 && options.durability == "memory";
}

}  // namespace crane::setup
