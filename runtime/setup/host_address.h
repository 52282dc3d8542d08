// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which IPv4 addresses this host has, and which of them Crane has added: the kernel keeps a mark of
// that (kAddedByCrane), so that no other address is ever removed.
//
// Threads: plain functions.

#include <cstdint>
#include <string>

#include "dmt/base/result.h"

namespace crane::setup {

enum class AddressOwner : std::uint8_t { kNone, kCrane, kHost };

// `address`: network order.  kNone also where the kernel does not say.
AddressOwner owner_of_address(std::uint32_t address) noexcept;

// The virtual address is no address that the host has by itself; kHost.  `prefix` may be empty.
Outcome check_virtual_ip(const std::string& prefix);

}  // namespace crane::setup
