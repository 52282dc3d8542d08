// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the first turn at which two recordings differ.  Recordings hold a hash per log index.  Both
// histories run again up to the first difference, in separate processes that record every turn, and
// these turns are compared.
//
// Threads: one.
//
// INVARIANT LIVE-V7  A turn is named only if each repeated history had the schedule of its
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
  std::string why_not;             // why no turn is named despite a difference
};

// `one`, `other`: a file of a replica's recording, or a directory with one replica's recording.
BisectReport bisect(const std::string& one, const std::string& other, bool verbose);

}  // namespace crane::node
