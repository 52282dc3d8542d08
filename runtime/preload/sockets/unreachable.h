// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attempts that cannot succeed: datagrams to other hosts, and UDP ports that no client can reach.
// All are counted (dmt::Unsupported). Each address is reported once, with the reason; processes
// related by fork share this record.
//
// Threads / Processes: any; lock-free.

#include <cstdint>

#include "dmt/sequence/entry.h"

namespace crane::unreachable {

enum class What : std::uint8_t { kDatagram, kPort };

// Maps the memory that children of fork share. Called once, before there are any.
void prepare() noexcept;

void name(What what, const VirtualAddress& address) noexcept;

}  // namespace crane::unreachable
