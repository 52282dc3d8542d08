// SPDX-License-Identifier: Apache-2.0
#pragma once
// Signals to the owner of an open file description: SIGURG (urgent.h), and with O_ASYNC, when its
// readiness rises or new bytes come: SIGIO, or the signal of F_SETSIG with the descriptor and the
// events.
//
// Threads / Processes: REQUIRES the turn.

#include "dmt/layout.h"

namespace crane::dmt {

// Of a kind whose readiness the kernel would tell by a signal: sockets, pipes and terminals.
bool may_tell_owner(FileKind kind) noexcept;

// Nothing is sent where there is none, or where it has ended.
void send_to_owner(Layout& w, const FileOwner& owner, int signo, const SignalInfo& info) noexcept;

// The file's level is `now`; `rise` are the bits that were not set before, and `edge` says that
// something has come though none is.
void tell_owner(Layout& w, std::uint32_t file, Readiness now, Readiness rise, bool edge) noexcept;

}  // namespace crane::dmt
