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

}  // namespace crane::setup
