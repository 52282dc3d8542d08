// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts how often each of the core's declared moves (consensus/core/transitions.h) was taken.

#include <cstdint>
#include <string>
#include <vector>

#include "consensus/core/transitions.h"

namespace crane::consensus::sim {

struct Move {
  std::string name;  // "role follower -> candidate"
  std::uint64_t taken = 0;
};

// Every declared move once, in a fixed order.
std::vector<Move> declared_moves(const core::MoveCounts& counts);
void add(core::MoveCounts& sum, const core::MoveCounts& more);

const char* name(Role role);
const char* name(core::PeerState state);
const char* name(core::Phase phase);
const char* name(core::FenceState state);
const char* name(core::GrantState state);

}  // namespace crane::consensus::sim
