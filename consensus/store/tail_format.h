// SPDX-License-Identifier: Apache-2.0
#pragma once
// The head of a log's tail (log_tail.h).
//
// Threads: plain values.

#include <cstddef>
#include <cstdint>

#include "dmt/base/crc.h"
#include "dmt/base/ids.h"

namespace crane::consensus::store {

inline constexpr std::uint64_t kTailMagic = 0x314c4941544e5243U;  // "CRNTAIL1"
inline constexpr std::uint32_t kTailVersion = 1;

struct TailPlace {
  std::uint64_t pos = 0, view = 0, index = 0;
};

struct TailHead {
  std::uint64_t magic = 0;
  std::uint64_t log_id = 0;
  std::uint32_t version = kTailVersion;
  std::uint32_t zero = 0;
  TailPlace begin, end;
  std::uint64_t entries = 0;
  std::uint64_t digest = 0;  // CRC64 of the entries' bytes
  std::uint64_t crc = 0;     // CRC32C of all fields before
};
static_assert(sizeof(TailHead) == 96, "the head has no holes");

inline std::uint64_t crc_of(const TailHead& head) noexcept {
  return crc32c(&head, offsetof(TailHead, crc));
}

}  // namespace crane::consensus::store
