// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the segment holds of time slices (slices.h).  Only layout; no logic.
//
// Threads / Processes: as each field's comment says (layout.h, DMT-L1).

#include <atomic>
#include <cstdint>

#include "dmt/sequence/entry.h"
#include "dmt/tuning.h"

namespace crane::dmt {

// Whether a sliced thread may have the next turn: by a bubble when no other one wants it, and
// before the others when an entry has been admitted behind that bubble.
enum class SliceGrant : std::uint8_t { kNone, kLast, kFirst };

// The tick points that were admitted, in that order.
struct TickPoints {
  std::uint32_t used;
  std::uint32_t changes;  // how often one was added or got another weight
  TickPoint points[kTickPointsMax];
};

// Points that count from a turn on that is older than the entry with them: node, before its server
// starts; `waiting` the turn holder.
struct EarlyPoints {
  std::uint32_t used;
  std::uint32_t waiting;  // by bit: not yet admitted
  EarlyPoint points[kEarlyPointsMax];
};

// Of the slices that ended on this replica, for its node: no part of the schedule.
struct SliceReport {
  std::atomic<std::uint64_t> slices;     // any: how many; raised after the others were written
  std::atomic<std::uint32_t> point;      // any: at which the last one ended
  std::atomic<std::uint32_t> weight_ps;  // any: of the point, during that slice
  std::atomic<std::int64_t> cpu_ns;      // any: the processor time that it took; 0: not known
  std::atomic<std::uint32_t> refused[kTickPointsMax];  // any: processes that cannot have the point
};

}  // namespace crane::dmt
