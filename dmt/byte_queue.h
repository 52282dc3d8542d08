// SPDX-License-Identifier: Apache-2.0
#pragma once
// A FIFO of bytes in blocks of the pool (blocks.h).
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// REQUIRES: fits(w, n).
void append(Layout& w, ByteQueue& q, const std::uint8_t* bytes, std::size_t n) noexcept;
// Copies the oldest bytes, up to `n`, and removes them; returns how many.
std::size_t take(Layout& w, ByteQueue& q, std::uint8_t* to, std::size_t n) noexcept;
// Drops all but the oldest `kept` bytes.
void cut(Layout& w, ByteQueue& q, std::uint32_t kept) noexcept;

}  // namespace crane::dmt
