// SPDX-License-Identifier: Apache-2.0
#pragma once
// The last turns of the server, read while it runs.
//
// Threads: the node's.  Processes: the turn holder may overwrite the records during the read.

#include <cstdint>
#include <vector>

#include "dmt/layout.h"
#include "dmt/sequence/turn_record.h"

namespace crane::node {

struct RecentTurns {
  std::uint64_t first = 1;  // number of turns[0]
  std::vector<TurnRecord> turns;
};
// The remembered complete turns up to `last`; empty if the server has overwritten them all.
// REQUIRES: turn `last` was over when the node learned of it.
RecentTurns recent_turns(const dmt::Layout& w, std::uint64_t last);

}  // namespace crane::node
