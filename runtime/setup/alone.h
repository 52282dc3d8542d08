// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group of one replica with its log in memory cannot recover.  It takes no checkpoints, because
// its clients would wait for them.
//
// Threads: a pure function.

#include <cstddef>

#include "runtime/setup/option_table.h"

namespace crane::setup {

inline bool cannot_recover(std::size_t replicas, const NodeOptions& options) {
  return replicas == 1 && options.durability == "memory";
}

}  // namespace crane::setup
