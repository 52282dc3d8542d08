// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes in the order in which they came, in blocks of the pool (blocks.h).
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// REQUIRES: fits(w, n).
void append(Layout& w, ByteQueue& q, const std::uint8_t* bytes, std::size_t n) noexcept;
// The oldest bytes, up to `n`; how many.
std::size_t take(Layout& w, ByteQueue& q, std::uint8_t* to, std::size_t n) noexcept;
// All but the oldest `kept` bytes go.
void cut(Layout& w, ByteQueue& q, std::uint32_t kept) noexcept;

}  // namespace crane::dmt
