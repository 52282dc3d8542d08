// SPDX-License-Identifier: Apache-2.0
#pragma once
// One turn, recorded to name the first turn that differs between two replicas (DESIGN D14).  The
// schedule hash folds slot, operation and result; the other fields only help a reader.
//
// Threads: plain values.

#include <cstdint>

namespace crane {

struct TurnRecord {
  std::uint64_t result;
  std::uint64_t object;  // the object that it waited for, signalled or locked; 0: unknown
  std::uint64_t caller;  // return address in the server's code; 0: unknown
  std::uint32_t operation;
  std::uint16_t slot;
  std::uint16_t process;
};
static_assert(sizeof(TurnRecord) == 32);

// The scheduler's own operations, numbered above the runtime's: an ended thread passes the turn; a
// stalled thread gives way.
inline constexpr std::uint32_t kOperationLeave = 0xffff0001, kOperationYield = 0xffff0002;

// The steps of the schedule hash (dmt/schedule_hash.h), for code that recomputes a schedule.
inline std::uint64_t fold_schedule(std::uint64_t hash, std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  hash = (hash ^ a) * kMultiplier;
  hash ^= hash >> 29;
  return (hash ^ b) * kMultiplier;
}
inline std::uint64_t fold_turn(std::uint64_t hash, std::uint16_t slot, std::uint32_t operation,
                               std::uint64_t result) noexcept {
  return fold_schedule(hash, (static_cast<std::uint64_t>(slot) << 32) | operation, result);
}
inline std::uint64_t fold_admission(std::uint64_t hash, std::uint64_t index,
                                    std::uint64_t clock) noexcept {
  return fold_schedule(hash, index, clock);
}

}  // namespace crane
