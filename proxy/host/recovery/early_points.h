// SPDX-License-Identifier: Apache-2.0
#pragma once
// The early points (dmt/slices.h) of a replica, which outlive its node process.  They are stored in
// the directory of the replica, with the digest of the group's log.
//
//   EARLY_POINT is committed ── a node whose server began without it stores it and ends
//                            ── the next process begins at a checkpoint before its clock, or with
//                               all inputs, and the point counts from that clock on
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

// The points of this group's log; unreadable ones are logged and left out.
std::vector<EarlyPoint> noted_early_points(const Config& config);
// Adds a point to the stored ones; on success every later process of this node reads it.
Outcome note_early_point(const Config& config, const EarlyPoint& point);

// SLICE-4: the first of the points `noted` that a server at this state lacked at its clock.
// nullptr: the server can continue from this state.
const EarlyPoint* first_missing(const NodeState& state, std::span<const EarlyPoint> noted) noexcept;
// Call before the server starts.  `state` is the state at which the server begins.
void put_early_points(dmt::Layout& layout, const NodeState& state,
                      std::span<const EarlyPoint> noted) noexcept;

}  // namespace crane::node
