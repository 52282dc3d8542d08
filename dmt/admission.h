// SPDX-License-Identifier: Apache-2.0
#pragma once
// The effect of one entry of the Paxos sequence on the virtual world (DESIGN D3, D4, rule 8): first
// virtual time advances to the entry's stamp and every deadline up to it fires, then the effect.
//
// Threads / Processes: REQUIRES the turn.

#include <cstddef>
#include <span>

#include "dmt/layout.h"
#include "dmt/sequence/entry.h"

namespace crane::dmt {

// Admits the next entry of the sequence: its effect and its grant.  Returns false if there is none.
// A damaged entry fences the replica.
bool admit_next(Layout& w) noexcept;

// Fires every deadline <= now_ns in (deadline, order of arming).  Called by admission only.
void fire_timers(Layout& w) noexcept;

}  // namespace crane::dmt
