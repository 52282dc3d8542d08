// SPDX-License-Identifier: Apache-2.0
#pragma once
// The last turns of the server, read while it goes on.
//
// Threads: the node's.  Processes: the turn holder overwrites what is read here.

#include <cstdint>
#include <vector>

#include "dmt/layout.h"
#include "dmt/sequence/turn_record.h"

namespace crane::node {

struct RecentTurns {
  std::uint64_t first = 1;  // number of turns[0]
  std::vector<TurnRecord> turns;
};
// Those up to `last` that are remembered, whole; none when the server has left them behind.
// REQUIRES: turn `last` was over when the node learned of it.
RecentTurns recent_turns(const dmt::Layout& w, std::uint64_t last);

}  // namespace crane::node
