// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of services from /etc/services, which is an ordinary file of the server.
//
// Threads: REQUIRES the turn.

#include <cstddef>
#include <cstdint>

namespace crane::services {

// Returns the port of `name`, which may be an alias on its line, for `protocol` ("tcp"); -1: not
// found.
int find_port(const char* name, const char* protocol) noexcept;
// Writes the first name of `port`; false: not found. The name ends with a 0 in `room`.
bool find_name(std::uint16_t port, const char* protocol, char* out, std::size_t room) noexcept;

}  // namespace crane::services
