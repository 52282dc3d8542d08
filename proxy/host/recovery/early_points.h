// SPDX-License-Identifier: Apache-2.0
#pragma once
// The early points (dmt/slices.h) of a replica, from one life of its node to the next: in the
// directory of the replica, with the group's log that they belong to.
//
//   EARLY_POINT is committed ── a node whose server began without it notes it and ends
//                            ── its next life begins at a checkpoint before its clock, or with all
//                               inputs, and the point counts from that clock on
//
// Threads: plain functions, the node's one thread.

#include <span>
#include <vector>

#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "dmt/sequence/entry.h"
#include "proxy/host/config.h"
#include "proxy/host/recovery/node_state.h"

namespace crane::node {

// Of this group's log; what cannot be read is said and left out.
std::vector<EarlyPoint> noted_early_points(const Config& config);
// Beside those; after it the next life knows it, whatever happens.
Outcome note_early_point(const Config& config, const EarlyPoint& point);

// SLICE-4: of those `noted`, the first that a server at this state lacked at its clock; nullptr:
// it can go on there.
const EarlyPoint* lacked_by(const NodeState& state, std::span<const EarlyPoint> noted) noexcept;
// Before the server starts; `state`: where it begins.
void put_early_points(dmt::Layout& layout, const NodeState& state,
                      std::span<const EarlyPoint> noted) noexcept;

}  // namespace crane::node
