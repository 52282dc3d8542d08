// SPDX-License-Identifier: Apache-2.0
#pragma once
// A TCP port, and an IP address with a port, as users write them: "10.0.0.1:80" or
// "[2001:db8::1]:80".
//
// Threads: pure functions.

#include <cstdint>
#include <string>

#include "dmt/layout.h"

namespace crane::setup {

// Parses 1 to 65535, only digits.  Returns false for any other text.
bool parse_port(const std::string& text, std::uint16_t& port);
// Whether `text` is an IPv4 or IPv6 address, without brackets.
bool is_ip(const std::string& text);
// Removes the brackets around an IPv6 address.  Returns false if there are none.
bool strip_brackets(std::string& host);
// Returns false if `text` is no address; then `address` holds no valid value.
bool parse_address(const std::string& text, VirtualAddress& address);
std::string address_text(const VirtualAddress& address);

}  // namespace crane::setup
