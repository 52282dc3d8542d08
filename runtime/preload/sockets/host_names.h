// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of hosts.  Numbers, localhost and the name of the machine that all replicas claim to be are
// answered here; all other names, also those of /etc/hosts, which differs between hosts, by the
// leader's resolver, through the log (dmt/names.h).
//
// Threads: REQUIRES the turn.

#include <cstdint>

#include "dmt/sequence/entry.h"
#include "runtime/preload/turn/turn.h"

namespace crane::host_names {

// What a name that is a number says: 0, EAI_ADDRFAMILY for another family than `family`, EAI_NONAME
// for an interface that is not there; kNoNumber.  `maps`: an IPv4 address may be one of IPv6.
inline constexpr int kNoNumber = 1;
int read_number(const char* name, int family, bool maps, VirtualAddress& out) noexcept;

void ask_for_addresses(Turn& turn, const char* name, int family, int flags,
                       ResolvedBody& answer) noexcept;
// `address` without a port.
void ask_for_name(Turn& turn, const VirtualAddress& address, int flags,
                  ResolvedBody& answer) noexcept;

}  // namespace crane::host_names
