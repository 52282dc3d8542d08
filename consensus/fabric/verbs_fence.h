// SPDX-License-Identifier: Apache-2.0
#pragma once
// Looks whether a way of taking a permission back is a fence on a device: a thread streams writes
// over a connection of the device to itself, the permission is taken back in the middle, and then
// the memory must not change any more.  It can show that a way is none, never that it is one.
//
// Threads: it starts one per round and ends it.

#include <cstddef>
#include <cstdint>

#include "consensus/fabric/verbs.h"

namespace crane::consensus {

struct FenceProbe {
  Fence fence = Fence::kDeregister;
  unsigned rounds_max = 100;
  std::size_t bytes = 4096;   // of each write
  unsigned watch_us = 4000;   // how long the memory is watched in a round
  bool stop_at_first = true;  // end with the first late write
  unsigned seconds_max = 600;
  std::uint64_t seed = 1;
};
struct FenceReport {
  unsigned rounds = 0;
  unsigned late = 0;         // rounds in which a write landed after the revoke
  std::uint64_t writes = 0;  // that completed before it, in all
  unsigned late_us_max = 0;  // after the revoke
};
// Errors: what the device refused.
Result<FenceReport> probe_fence(const verbs::Device& device, const FenceProbe& probe);

}  // namespace crane::consensus
