// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parents and children: what prctl says of them, and what the kernel keeps of them.
//
// Threads: any with a slot, not within a turn.

namespace crane::family {

bool is_option(int option) noexcept;
// The kernel's answer: 0 or a negative error number.
long control(int option, long argument) noexcept;

// A replica's server does not outlive what started it, which has the kernel kill it then.  The
// kernel forgets that when the server changes its user or group: it is told again.
void note_parent_death_signal() noexcept;
void renew_parent_death_signal() noexcept;

// The kernel keeps no zombies of the calling process.  The schedule keeps those that are waited
// for; orphans of a server whose process is the first of its container would stay for ever.
void forget_children_in_kernel() noexcept;

}  // namespace crane::family
