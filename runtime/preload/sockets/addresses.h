// SPDX-License-Identifier: Apache-2.0
#pragma once
// Addresses between the system calls' form and the segment's, where an IPv4 address that an IPv6
// socket names (::ffff:1.2.3.4) is one of IPv4.
//
// Threads: any.  Results: 0 or a negative error number.

#include <sys/socket.h>

#include "dmt/sequence/entry.h"

namespace crane::addresses {

// `out` has family, port and ip, as given; `wanted`: the family that the caller takes, 0 = both.
int from_sockaddr(const struct sockaddr* address, socklen_t size, VirtualAddress& out,
                  int wanted = 0) noexcept;
// As accept and getsockname fill the caller's buffer: cut to *size, *size the full length.
void to_sockaddr(const VirtualAddress& address, struct sockaddr* out, socklen_t* size) noexcept;

// A mapped address becomes the IPv4 one; false: it was none.
bool unmap(VirtualAddress& address) noexcept;
// An IPv4 address becomes the mapped one.
void map_to_ipv6(VirtualAddress& address) noexcept;

}  // namespace crane::addresses
