// SPDX-License-Identifier: Apache-2.0
#pragma once
// Signals to the owner of an open file description: SIGURG (urgent.h), and with O_ASYNC a signal
// when its readiness rises or new bytes come.  That signal is SIGIO, or the signal of F_SETSIG with
// the descriptor and the events.
//
// Threads / Processes: REQUIRES the turn.

#include "dmt/layout.h"

namespace crane::dmt {

// Whether the kernel would signal the readiness of this kind: sockets, pipes and terminals.
bool can_signal_owner(FileKind kind) noexcept;

// Sends nothing if there is no owner or if it has ended.
void send_to_owner(Layout& w, const FileOwner& owner, int signo, const SignalInfo& info) noexcept;

// The file's level is `now`.  `rise` contains the bits that were not set before.  `edge` is true if
// there is a new event although no bit is new.
void signal_owner(Layout& w, std::uint32_t file, Readiness now, Readiness rise, bool edge) noexcept;

}  // namespace crane::dmt
