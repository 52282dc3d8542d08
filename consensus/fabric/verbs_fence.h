// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ways to revoke a write permission (FABRIC-F2), and a test whether one is a fence.
//
// Threads: probe_fence starts and ends one per round; the rest uses only the caller's.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "consensus/fabric/verbs.h"

namespace crane::consensus {

// Called by the owner of a connection and of the registration in its domain: revokes the other
// end's write permission by `fence`, or by deregistration if `fence` fails.  Returns 0 when the
// device executes nothing more for the connection, else the errno of the failure.
int take_back(Fence fence, verbs::Owned<ibv_qp>& qp, verbs::Owned<ibv_mr>& region) noexcept;

// Tests whether a way to revoke is a fence on a device.  A thread streams writes over a loopback
// connection of the device.  The test revokes the permission in the middle; the memory must not
// change after that.  The test can prove that a way is no fence, never that it is one.
struct FenceProbe {
  Fence fence = Fence::kDeregister;
  unsigned rounds_max = 100;
  std::size_t bytes = 4096;   // of each write
  unsigned watch_us = 4000;   // how long each round watches the memory
  bool stop_at_first = true;  // end at the first late write
  unsigned seconds_max = 600;
  std::uint64_t seed = 1;
};
struct FenceReport {
  unsigned rounds = 0;
  unsigned late = 0;         // rounds in which a write landed after the revoke
  std::uint64_t writes = 0;  // total writes that completed before the revoke
  unsigned late_us_max = 0;  // the longest time from a revoke to a late write
};
// Errors: the call that the device refused.
Result<FenceReport> probe_fence(const verbs::Device& device, const FenceProbe& probe);

// Whether an allow-list contains the device or its driver, or the part of either before a '_'.
bool listed(const std::vector<std::string>& list, const std::string& device,
            const std::string& driver);
// Whether access flags may be the fence: the device must be on the list, and the test must have
// seen no late write.  Else kUnsupported.
Outcome check_fence_flags(bool on_list, const FenceReport& tested) noexcept;

}  // namespace crane::consensus
