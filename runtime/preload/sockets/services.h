// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of services, as /etc/services has them: it is a file of the server, as others.
//
// Threads: REQUIRES the turn.

#include <cstddef>
#include <cstdint>

namespace crane::services {

// The port of `name`, or of another name of the same line, by `protocol` ("tcp"); -1: there is
// none.
int find_port(const char* name, const char* protocol) noexcept;
// Writes the first name of `port`; false: there is none.  0 in `room` of a name that has none.
bool find_name(std::uint16_t port, const char* protocol, char* out, std::size_t room) noexcept;

}  // namespace crane::services
