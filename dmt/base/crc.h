// SPDX-License-Identifier: Apache-2.0
#pragma once
// CRC32C (Castagnoli) with the processor's instruction, and CRC64 (ECMA-182, reflected) by table.
// CRC32C guards log and sequence entries; CRC64 covers buckets of output (FALCON 5). Freestanding,
// because libcrane.so links libc only.  Bulk work in the node may use ISA-L, which returns the same
// values.
//
// Threads: pure functions.

#include <cstddef>
#include <cstdint>

namespace crane {

// CRC32C of `size` bytes, continuing from `crc` (0 at the start).
std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc = 0) noexcept;

// CRC64/XZ of `size` bytes, continuing from `crc` (0 at the start).
std::uint64_t crc64(const void* data, std::size_t size, std::uint64_t crc = 0) noexcept;

}  // namespace crane
