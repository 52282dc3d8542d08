// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts addresses between the form of the system calls and that of the segment. In the segment,
// an IPv4 address that an IPv6 socket names (::ffff:1.2.3.4) is an IPv4 address.
//
// Threads: any.  Results: 0 or a negative error number.

#include <sys/socket.h>

#include "dmt/sequence/entry.h"

namespace crane::addresses {

// Stores family, port and ip in `out`; `wanted`: the family that the caller accepts, 0 = both.
int from_sockaddr(const struct sockaddr* address, socklen_t size, VirtualAddress& out,
                  int wanted = 0) noexcept;
// Fills the caller's buffer as accept and getsockname do: cut to *size; *size becomes the full
// length.
void to_sockaddr(const VirtualAddress& address, struct sockaddr* out, socklen_t* size) noexcept;

// Converts a mapped address to IPv4; false: the address is not mapped.
bool unmap(VirtualAddress& address) noexcept;
// Converts an IPv4 address to a mapped one.
void map_to_ipv6(VirtualAddress& address) noexcept;

}  // namespace crane::addresses
