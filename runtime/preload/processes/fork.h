// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creation of processes (DESIGN D2, rule 15): the child's slot is assigned at the parent's turn,
// between the application's atfork handlers (whose own operations are scheduled as usual) and the
// kernel's clone.
//
// Threads: the forking thread.

#include <cstdint>

#include "runtime/preload/ground/types.h"
#include "runtime/preload/turn/process_end.h"

namespace crane {

// Registers our handlers before all others: prepare runs last before the clone, parent and child
// first after it. Idempotent; called by the constructor or by the first other registration.
void register_atfork_handlers() noexcept;

// fork() for our own wrappers (system, popen, posix_spawn, daemon), as the application's fork().
// kSpawns: for posix_spawn, whose parent waits until the child executes a program.
inline constexpr bool kSpawns = true;
pid_t scheduled_fork(bool spawns = false) noexcept;

// vfork as a direct system call of the program.
pid_t vfork_by_number() noexcept;

// Registers the handler that ends the process for the schedule after all exit handlers have run.
void register_exit_handlers() noexcept;

}  // namespace crane
