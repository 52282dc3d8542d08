// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the server can never go on: every thread waits, and for nothing that input, time or a
// signal of the operator's could bring.  Natively such a program hangs as well; here the node says
// which thread waits for what.
//
// Threads / Processes: the node.  No turn is needed: the answer is of the moment, and is true
// when two looks at one clock agree.
//
// INVARIANT STUCK-1  A server is said to be stuck only when nothing that the node can admit would
//               wake one of its threads: no timer is armed, none awaits a signal, or a file that a
//               client, a datagram or the kernel makes ready.

#include <cstdint>
#include <span>

#include "dmt/layout.h"

namespace crane::dmt {

// False also while a thread computes, or is away by agreement.
bool is_stuck(const Layout& w) noexcept;

// The next slot after `slot` (0: the first) whose thread waits; 0: no more.
std::uint16_t next_waiting(const Layout& w, std::uint16_t slot) noexcept;

// "thread 17 of process 12 waits in pthread_mutex_lock, called at 0x5555555551d2, since 3.204 s;
// thread 18 of process 12 was the last in pthread_mutex_lock of the same object".
void describe_wait(const Layout& w, std::uint16_t slot, std::span<char> text) noexcept;

}  // namespace crane::dmt
