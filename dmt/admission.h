// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one entry of the Paxos sequence does to the virtual world (DESIGN D3, D4, rule 8): first
// virtual time advances to the entry's stamp and every deadline up to it fires, then the effect.
//
// Threads / Processes: REQUIRES the turn.

#include <cstddef>
#include <span>

#include "dmt/layout.h"
#include "dmt/sequence/entry.h"

namespace crane::dmt {

// Admits the next entry of the sequence, if there is one: its effect, its grant.  False: none.
// A damaged entry fences the replica.
bool admit_next(Layout& w) noexcept;

// Stops the replica where it is (rule 17, D18): no thread goes on, the node is told.
[[noreturn]] void fence(Layout& w, const char* why) noexcept;
// The same where the machine refuses what the server asked for, before anything came of it: all
// that this replica did until then is right, so that others may go on with its clients.
[[noreturn]] void fence_refused(Layout& w, const char* why) noexcept;
inline constexpr std::uint32_t kFencedWrong = 1, kFencedRefused = 2;  // SchedulerState::fenced

}  // namespace crane::dmt
