// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the server tries and no one answers: datagrams to elsewhere, UDP ports that no client can
// reach.  All are counted (dmt::Unsupported).  Each is named once, with its address
// and the reason; processes that were forked from one another say it together.
//
// Threads / Processes: any; lock-free.

#include <cstdint>

#include "dmt/sequence/entry.h"

namespace crane::unreachable {

enum class What : std::uint8_t { kDatagram, kPort };

// Memory that children of fork share.  Once, before there are any.
void prepare() noexcept;

void name(What what, const VirtualAddress& address) noexcept;

}  // namespace crane::unreachable
