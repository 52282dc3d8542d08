// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of hosts. This code resolves numbers, localhost, and the machine name that all replicas
// claim to have. The leader's resolver answers all other names through the log (dmt/names.h), also
// those in /etc/hosts, which differs between hosts.
//
// Threads: REQUIRES the turn.

#include <cstdint>

#include "dmt/sequence/entry.h"
#include "runtime/preload/turn/turn.h"

namespace crane::host_names {

// Reads a name that is a number. Returns 0, EAI_ADDRFAMILY for another family than `family`,
// EAI_NONAME for an interface that does not exist, or kNoNumber. `maps`: an IPv4 address may be
// returned as IPv6.
inline constexpr int kNoNumber = 1;
int read_number(const char* name, int family, bool maps, VirtualAddress& out) noexcept;

void ask_for_addresses(Turn& turn, const char* name, int family, int flags,
                       ResolvedBody& answer) noexcept;
// Ignores the port of `address`.
void ask_for_name(Turn& turn, const VirtualAddress& address, int flags,
                  ResolvedBody& answer) noexcept;

}  // namespace crane::host_names
