// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ways to take a permission to write back (FABRIC-F2), and what tells whether one is a fence.
//
// Threads: probe_fence starts one per round and ends it; the rest uses the caller's only.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "consensus/fabric/verbs.h"

namespace crane::consensus {

// What the owner of a connection and of the registration in its domain does to take back what the
// other end may write.  When the way that was chosen fails the registration goes.  0: the device
// executes nothing more for them; else the errno of the refusal.
int take_back(Fence fence, verbs::Owned<ibv_qp>& qp, verbs::Owned<ibv_mr>& region) noexcept;

// Looks whether a way is a fence on a device: a thread streams writes over a connection of the
// device to itself, the permission is taken back in the middle, and then the memory must not change
// any more.  It can show that a way is none, never that it is one.
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

// Whether an allow-list names the device, or its driver, or what either begins with up to a '_'.
bool listed(const std::vector<std::string>& list, const std::string& device,
            const std::string& driver);
// May access flags be the fence?  The list permits, a late write forbids.  kUnsupported.
Outcome judge_flags(bool on_list, const FenceReport& tested) noexcept;

}  // namespace crane::consensus
