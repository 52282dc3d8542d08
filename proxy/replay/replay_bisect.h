// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first turn at which two recordings differ.  Recordings hold a hash per log index; where they
// differ first, both histories run again, in processes of their own, with every turn recorded, and
// these are compared.
//
// Threads: one.
//
// INVARIANT LIVE-V7  A turn is named only when each history, run again, had the schedule of its own
//               recording up to the first index that differs.

#include <optional>
#include <string>
#include <vector>

#include "proxy/record/schedule_compare.h"
#include "proxy/replay/replay_setup.h"

namespace crane::node {

struct BisectReport {
  Outcome problem = Done{};
  proxy::ScheduleComparison comparison;  // of the recordings
  std::optional<proxy::TurnDifference> turn;
  std::vector<std::string> sides;  // of the turn, as text
  std::string why_not;             // there is a difference, and no turn is named
};

// `one`, `other`: a file of a replica's recording, or its directory with one replica's.
BisectReport bisect(const std::string& one, const std::string& other, bool verbose);

}  // namespace crane::node
