// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds out whether this host has an IPv4 address, and whether Crane has added it.  The kernel
// keeps a mark (kAddedByCrane) at these addresses, so Crane never removes any other address.
//
// Threads: plain functions.

#include <cstdint>
#include <string>

#include "dmt/base/result.h"

namespace crane::setup {

enum class AddressOwner : std::uint8_t { kNone, kCrane, kHost };

// `address`: network order.  Also returns kNone if the kernel does not answer.
AddressOwner owner_of_address(std::uint32_t address) noexcept;

// Checks that the virtual address is not one of the host's own addresses.  `prefix` may be empty.
// Errors: kHost.
Outcome check_virtual_ip(const std::string& prefix);

}  // namespace crane::setup
