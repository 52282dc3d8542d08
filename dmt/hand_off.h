// SPDX-License-Identifier: Apache-2.0
#pragma once
// Passes the turn from thread to thread.  A waiter spins while that pays (spin_budget.h) and a core
// is left for the turn holder, then sleeps on a futex (DESIGN D10).
//
// Threads / Processes: await_turn by any thread for its own slot; pass_turn REQUIRES the turn.

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Returns when `me` has the turn.  With kMayOperate, the clock must also be below the leader's
// clock limit, or a preempt request must name this clock (stall.h).
enum class Until : std::uint8_t { kHasTurn, kMayOperate };
void await_turn(Layout& w, std::uint16_t me, Until until) noexcept;

// Call it in the child of a fork: the threads that may have been spinning do not exist there.
void forget_spinners() noexcept;

// Gives the turn to `to` and wakes its thread if it sleeps: at most one futex call.
void pass_turn(Layout& w, std::uint16_t to) noexcept;

// A server restored from a checkpoint has lost part of the kernel's state of its threads.  The
// process' handler is called once in each thread, with the turn, before the thread continues from
// its sleep: all threads were asleep in await_turn() (quiescence.h).  `restores` counts the
// restores.
using RestoreHandler = void (*)(std::uint32_t restores) noexcept;
void set_restore_handler(RestoreHandler handler) noexcept;
// Calls the handler if there was a restore since this thread last checked.  await_turn() does that;
// a thread that begins an operation may have the turn without it.  REQUIRES the turn.
void look_for_restore(const Layout& w) noexcept;

// Delays this thread randomly, physically only: determinism tests (Configuration::perturb_seed).
void perturb(const Layout& w) noexcept;

}  // namespace crane::dmt
