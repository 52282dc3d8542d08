// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rolling hash of the schedule (DESIGN D14): one multiply per turn over (slot, operation,
// result), none of which is an address or an inode.  One prefix is stored per kHashPeriod turns, so
// that a search can narrow down the first turn that differs between two replicas.
//
// Threads / Processes: REQUIRES the turn.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

inline void fold_turn(SchedulerState& s, HashPoint* history, std::uint16_t slot, std::uint32_t op,
                      std::uint64_t result) noexcept {
  s.hash = crane::fold_turn(s.hash, slot, op, result);
  if ((s.clock & (kHashPeriod - 1)) == 0) {
    history[(s.clock / kHashPeriod) % kHashHistory] = {s.clock, s.hash};
  }
}

}  // namespace crane::dmt
