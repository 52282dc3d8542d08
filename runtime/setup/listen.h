// SPDX-License-Identifier: Apache-2.0
#pragma once
// A listening TCP socket for clients.
//
// Threads: plain function.

#include <cstdint>
#include <string>

#include "dmt/base/result.h"

namespace crane::setup {

// Non-blocking and closed on exec; the caller's.  `address`: Place::address; "*" means IPv4 alone
// on a host without IPv6.  `absent`: also an address that the host does not have, or not yet.
Result<int> listen_on(const std::string& address, std::uint16_t port, int backlog,
                      bool absent = false);

// The same, but it takes no clients before its owner calls listen(): a port that the server is
// bound to.  The server may connect from it.
Result<int> hold_port(const std::string& address, std::uint16_t port, int backlog,
                      bool absent = false);
// Whether this host has that address now; a wildcard always.
bool has_address(const std::string& address) noexcept;
// It takes clients; errno or 0.
int listen_again(int fd, int backlog) noexcept;

}  // namespace crane::setup
