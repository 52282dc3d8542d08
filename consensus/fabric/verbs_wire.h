// SPDX-License-Identifier: Apache-2.0
#pragma once
// Completions and their work requests; sizes of a connection's queues.

#include <infiniband/verbs.h>

#include <cstdint>

#include "dmt/base/ids.h"

namespace crane::consensus::verbs {

// Per connection of the background plane.
inline constexpr std::uint32_t kReceives = 64;  // posted ahead, one message each
// INVARIANT VERBS-V2: the peer has consumed a message before its slot is used again.
inline constexpr std::uint32_t kSendSlots = 128;
static_assert(kSendSlots > kReceives);  // VERBS-V2
inline constexpr std::uint32_t kBackgroundSends = 512;
inline constexpr std::uint32_t kReadsOutstandingMax = 64;
inline constexpr std::uint32_t kSignalEvery = 16;  // of the sends whose completion is not awaited
// The most sends per slot.
inline constexpr std::uint32_t kSlotSends = 512;
// Size of each completion queue.  INVARIANT VERBS-V3: it never overflows, whatever the peers do.
inline constexpr std::uint32_t kCompletions = 16384;

enum class WorkKind : std::uint8_t {
  kOperation = 1,  // number: the operation's, counted per peer
  kMark,           // a background send whose completion is not awaited
  kReceive,        // number: the slot
};

// The 64 bits that a device returns with a completion.
struct WorkId {
  WorkKind kind{};
  ReplicaId peer{};
  std::uint64_t number = 0;  // < 2^48

  std::uint64_t packed() const noexcept {
    return static_cast<std::uint64_t>(kind) << 56 | static_cast<std::uint64_t>(value(peer)) << 48 |
           (number & ((1ULL << 48) - 1));
  }
  static WorkId of(std::uint64_t bits) noexcept {
    return {static_cast<WorkKind>(bits >> 56), ReplicaId{static_cast<std::uint8_t>(bits >> 48)},
            bits & ((1ULL << 48) - 1)};
  }
};

// Takes all completions of a queue, up to `kBatch` at once.
template <int kBatch, typename Take>
void take_all(ibv_cq* queue, Take take) noexcept {
  ibv_wc done[kBatch];
  int n = kBatch;
  while (n == kBatch) {  // a partial batch: nothing is left
    n = ibv_poll_cq(queue, kBatch, done);
    for (int i = 0; i < n; ++i) take(done[i]);
  }
}

static_assert((kReadsOutstandingMax + kBackgroundSends / kSignalEvery) * kReplicasMax <=
              kCompletions);
static_assert(kReceives * kReplicasMax <= kCompletions);

}  // namespace crane::consensus::verbs
