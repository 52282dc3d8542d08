// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the core and a fabric call a right to write, an operation, and the size of a cell.
//
// Threads: plain values.

#include <cstddef>
#include <cstdint>

namespace crane::consensus {

// Names one grant of write permission, which the fabric gave; 0 names none.
enum class Key : std::uint64_t {};
inline constexpr Key kNoKey{0};
inline constexpr std::uint64_t value(Key k) noexcept { return static_cast<std::uint64_t>(k); }

// Chosen by the caller, returned by the completion; the fabric does not look at it.
enum class Token : std::uint64_t {};
inline constexpr std::uint64_t value(Token t) noexcept { return static_cast<std::uint64_t>(t); }

// A cell's words are read and written as a whole (FABRIC-F10).
inline constexpr std::size_t kCellWords = 6;

}  // namespace crane::consensus
