// SPDX-License-Identifier: Apache-2.0
#pragma once
// A listening TCP socket for clients.
//
// Threads: plain function.

#include <cstdint>
#include <string>

#include "dmt/base/result.h"

namespace crane::setup {

// Non-blocking and closed on exec; the caller's.  `address`: IPv4 or IPv6, anything else means all
// of this host.  An address that is not there yet may be bound (a virtual one).
Result<int> listen_on(const std::string& address, std::uint16_t port, int backlog);

// The same, but it takes no clients before its owner calls listen(): a port that the server is
// bound to.  The server may connect from it.
Result<int> hold_port(const std::string& address, std::uint16_t port, int backlog);
// It takes clients; errno or 0.
int listen_again(int fd, int backlog) noexcept;

}  // namespace crane::setup
