// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts system calls that bypassed the library and records the first distinct ones by name and
// place, for the operator.  Not part of the schedule.
//
// Threads / Processes: any; lock-free.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr std::uint32_t kNoRecord = UINT32_MAX;

// Counts one call and returns its record, or kNoRecord if kUnhookedMax others exist already.
struct Counted {
  std::uint32_t record;
  bool first;  // such a call was not counted before
};
Counted count_unhooked(Layout& w, const UnhookedCall& call) noexcept;

// Counts the same call again; `record` comes from the first count.
void count_unhooked_again(Layout& w, std::uint32_t record) noexcept;

// Strict mode: the first call recorded is the one that stopped the replica.  REQUIRES a record.
void note_stopped(Layout& w, std::uint32_t record) noexcept;

// The call of a record; null if there is none, or if it is incomplete.
const UnhookedRecord* unhooked_record(const Layout& w, std::uint32_t record) noexcept;

}  // namespace crane::dmt
