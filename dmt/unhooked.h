// SPDX-License-Identifier: Apache-2.0
#pragma once
// The count of system calls that bypassed the library: how many, and the first different ones by
// name and place, for the operator.  No part of the schedule.
//
// Threads / Processes: any; lock-free.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr std::uint32_t kNoRecord = UINT32_MAX;

// Counts one call and returns its record, or kNoRecord when kUnhookedMax others are there already.
struct Counted {
  std::uint32_t record;
  bool first;  // such a call was not counted before
};
Counted count_unhooked(Layout& w, const UnhookedCall& call) noexcept;

// The same call again: `record` is what the first one was given.
void count_unhooked_again(Layout& w, std::uint32_t record) noexcept;

// Strict mode: the first call to say so is the one that stopped the replica.  REQUIRES a record.
void note_stopped(Layout& w, std::uint32_t record) noexcept;

// The call of a record; null when there is none, or it is not complete yet.
const UnhookedRecord* unhooked_record(const Layout& w, std::uint32_t record) noexcept;

}  // namespace crane::dmt
