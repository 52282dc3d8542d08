// SPDX-License-Identifier: Apache-2.0
#pragma once
// What prctl says about parents and children: the signal at a parent's death, and who collects
// orphans.
//
// Threads: any with a slot, not within a turn.

namespace crane::family {

bool is_option(int option) noexcept;
// The kernel's answer: 0 or a negative error number.
long control(int option, long argument) noexcept;

}  // namespace crane::family
