// SPDX-License-Identifier: Apache-2.0
#pragma once
// A listening TCP socket for clients.
//
// Threads: plain function.

#include <cstdint>
#include <string>

#include "dmt/base/result.h"

namespace crane::setup {

// Opens a non-blocking socket that is closed on exec; the caller owns it.  `address`:
// Place::address; "*" means only IPv4 on a host without IPv6.  `absent`: also allows an address
// that the host does not have, or not yet.
Result<int> listen_on(const std::string& address, std::uint16_t port, int backlog,
                      bool absent = false);

// listen_on() for a port to which the server is bound: the socket accepts no clients before its
// owner calls listen().  The server may connect from the port.
Result<int> hold_port(const std::string& address, std::uint16_t port, int backlog,
                      bool absent = false);
// Whether this host has that address now; always true for a wildcard.
bool has_address(const std::string& address) noexcept;
// Makes the socket accept clients.  Returns errno or 0.
int listen_again(int fd, int backlog) noexcept;

}  // namespace crane::setup
