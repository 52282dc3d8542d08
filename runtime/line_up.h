// SPDX-License-Identifier: Apache-2.0
#pragma once
// Line-ups (hints/crane.h) are a process' own: a child of fork has its parent's as they were set
// up, and nobody in them.
//
// Threads: REQUIRES the turn; in a child of fork, before it has others.

namespace crane {

void forget_line_ups() noexcept;

}  // namespace crane
