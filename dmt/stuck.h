// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detects that the server can never continue: every thread waits, and no input, time or signal of
// the operator could wake one.  Natively such a program hangs, too; the node reports which thread
// waits for what.
//
// Threads / Processes: the node, without the turn.  An answer is momentary; it is reliable when two
// checks at one clock agree.
//
// INVARIANT STUCK-1  A server is reported as stuck only if nothing that the node can admit would
//               wake one of its threads: no timer is armed, and no thread awaits a signal, or a
//               file that a client, a datagram or the kernel makes ready.

#include <cstdint>
#include <span>

#include "dmt/layout.h"

namespace crane::dmt {

// Also false while a thread computes or is detached by agreement.
bool is_stuck(const Layout& w) noexcept;

// The next slot after `slot` (0: the first) with a waiting thread; 0: no more.
std::uint16_t next_waiting(const Layout& w, std::uint16_t slot) noexcept;

// "thread 17 of process 12 waits in pthread_mutex_lock, called at 0x5555555551d2, for 3204 ms of
// virtual time; the last other thread there: thread 18 of process 12 in pthread_mutex_lock".
void describe_wait(const Layout& w, std::uint16_t slot, std::span<char> text) noexcept;

}  // namespace crane::dmt
