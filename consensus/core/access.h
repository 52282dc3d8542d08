// SPDX-License-Identifier: Apache-2.0
#pragma once
// The terms that the core and a fabric share: a right to write, an operation, the size of a cell.
//
// Threads: plain values.

#include <cstddef>
#include <cstdint>

namespace crane::consensus {

// Identifies one grant of write permission by the fabric; 0 is no grant.
enum class Key : std::uint64_t {};
inline constexpr Key kNoKey{0};
inline constexpr std::uint64_t value(Key k) noexcept { return static_cast<std::uint64_t>(k); }

// Chosen by the caller and returned with the completion; the fabric does not interpret it.
enum class Token : std::uint64_t {};
inline constexpr std::uint64_t value(Token t) noexcept { return static_cast<std::uint64_t>(t); }

// A cell's words are read and written as a whole (FABRIC-F10).
inline constexpr std::size_t kCellWords = 6;

}  // namespace crane::consensus
