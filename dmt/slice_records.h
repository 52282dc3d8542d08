// SPDX-License-Identifier: Apache-2.0
#pragma once
// The records of time slices in the segment (slices.h).  Layout only; no logic.
//
// Threads / Processes: as stated per field (layout.h, DMT-L1).

#include <atomic>
#include <cstdint>

#include "dmt/sequence/entry.h"
#include "dmt/tuning.h"

namespace crane::dmt {

// Whether a sliced thread may have the next turn.  A bubble lets it run when no other thread wants
// the turn; an entry admitted after that bubble lets it run before the others.
enum class SliceGrant : std::uint8_t { kNone, kLast, kFirst };

// The admitted tick points, in order of admission.
struct TickPoints {
  std::uint32_t used;
  std::uint32_t changes;  // how often a point was added or its weight changed
  TickPoint points[kTickPointsMax];
};

// Points that count from a turn older than the entry with them.  The node writes them before its
// server starts; the turn holder writes `waiting`.
struct EarlyPoints {
  std::uint32_t used;
  std::uint32_t waiting;  // bits: not yet admitted
  EarlyPoint points[kEarlyPointsMax];
};

// The slices that ended on this replica, for its node; not part of the schedule.
struct SliceReport {
  std::atomic<std::uint64_t> slices;     // any: number; raised after the other fields
  std::atomic<std::uint32_t> point;      // any: where the last slice ended
  std::atomic<std::uint32_t> weight_ps;  // any: the point's weight during that slice
  std::atomic<std::int64_t> cpu_ns;      // any: processor time of that slice; 0: unknown
  std::atomic<std::uint32_t> refused[kTickPointsMax];  // any: processes that cannot use the point
};

}  // namespace crane::dmt
