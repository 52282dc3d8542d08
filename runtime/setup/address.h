// SPDX-License-Identifier: Apache-2.0
#pragma once
// An IP address with a port, as users write it: "10.0.0.1:80" or "[2001:db8::1]:80".
//
// Threads: pure functions.

#include <string>

#include "dmt/layout.h"

namespace crane::setup {

// Returns false if `text` is no address; then `address` holds no valid value.
bool parse_address(const std::string& text, VirtualAddress& address);
std::string address_text(const VirtualAddress& address);

}  // namespace crane::setup
