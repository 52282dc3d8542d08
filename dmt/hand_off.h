// SPDX-License-Identifier: Apache-2.0
#pragma once
// Passing the turn from thread to thread: spin while that pays (spin_budget.h) and a core is left
// for the thread that has the turn, then a futex (DESIGN D10).
//
// Threads / Processes: await_turn by any thread for its own slot; pass_turn REQUIRES the turn.

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

// Returns when `me` has the turn; or, to begin an operation, when the clock is also below what the
// node has told, or there is an order for this clock (stall.h).
enum class Until : std::uint8_t { kHasTurn, kMayOperate };
void await_turn(Layout& w, std::uint16_t me, Until until) noexcept;

// In the child of a fork: the threads that may have been spinning are not here.
void forget_spinners() noexcept;

// Gives the turn to `to`, waking its thread if it sleeps: at most one futex call.
void pass_turn(Layout& w, std::uint16_t to) noexcept;

// A server that was restored from a checkpoint has lost part of what the kernel knew of its
// threads.  The handler of this process is called once in each of them, with the turn, before what
// it slept in goes on: all were asleep in await_turn() (quiescence.h).  `restores` counts the
// restores.
using RestoreHandler = void (*)(std::uint32_t restores) noexcept;
void set_restore_handler(RestoreHandler handler) noexcept;
// Calls it if there was a restore since this thread looked last.  await_turn() does so; who begins
// may have the turn without it.  REQUIRES the turn.
void look_for_restore(const Layout& w) noexcept;

// A random delay of this thread, physical only: tests of determinism (Configuration::perturb_seed).
void perturb(const Layout& w) noexcept;

}  // namespace crane::dmt
