// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parents and children: prctl's options, and the kernel's state of them.
//
// Threads: any with a slot, not within a turn.

namespace crane::family {

bool is_option(int option) noexcept;
// Returns the kernel's result: 0 or a negative error number.
long control(int option, long argument) noexcept;

// A replica's server must not outlive its supervisor, so the kernel kills it when the supervisor
// dies. The kernel forgets this setting when the server changes its user or group; renew sets it
// again.
void note_parent_death_signal() noexcept;
void renew_parent_death_signal() noexcept;

// Tells the kernel to keep no zombies of the calling process. The schedule keeps the zombies that
// are waited for. Orphans of a server that is the first process of its container would otherwise
// stay forever.
void forget_children_in_kernel() noexcept;

}  // namespace crane::family
