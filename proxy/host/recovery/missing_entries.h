// SPDX-License-Identifier: Apache-2.0
#pragma once
// A follower that lacks entries which have left the others' logs: it waits for a checkpoint behind
// its own last entry, fetches one from another host if it has to, and restarts with it.  So does
// one that runs behind for so long that a newer checkpoint overtakes it (overtaking.h).
//
// A replica without a server waits for one, too (VOTES-1).
//
// Threads: the node's one thread.
// INVARIANT LACK-1  A replica gives up its server only when a checkpoint is there whose entry is
//                   behind all that it has; one that is overtaken, behind all that its server has
//                   run.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dmt/base/ids.h"
#include "proxy/host/config.h"
#include "proxy/host/recovery/shipping.h"

namespace crane::node {

// Of a member that votes, as a replica without a server sees it.
struct VoterSeen {
  ReplicaId id{};
  bool connected = false;
  std::optional<Index> waits_behind;  // it has no server either, and its log held so much
};

// Whether no voter but perhaps one that is away has a server; `self` has none.
bool none_has_server(std::span<const VoterSeen> voters, ReplicaId self) noexcept;

// The other voters that are connected are a majority.
bool others_suffice(std::span<const VoterSeen> voters, ReplicaId self) noexcept;

// Whether the replica may restart at a checkpoint at `at`, which it has known for so long
// (VOTES-1). While another one's server serves, the replica with the lowest id goes first, unless
// that does not go for kTurnNs; and the others are a majority without it, unless no other voter
// comes for kSpareNs, or there are only two: clients wait for a moment then.
inline constexpr std::int64_t kTurnNs = 10'000'000'000, kSpareNs = 30'000'000'000;
bool may_restart(std::span<const VoterSeen> voters, ReplicaId self, Index at,
                 std::int64_t known_ns) noexcept;

class MissingEntries {
 public:
  explicit MissingEntries(const Config& config) : config_(config) {}

  // `last`: of the own log, or the checkpoint that the replica began at.  `shipping`: nullptr when
  // all replicas' checkpoints are on this machine.  Why the replica restarts now; nullopt: it
  // goes on.  REQUIRES: it needs a checkpoint, as consensus says.
  std::optional<std::string> step(Index last, Shipping* shipping, std::int64_t now_ns);
  // A checkpoint at `least` or behind it would be reached later than a restart there takes.
  std::optional<std::string> overtaken(Index applied, Index least, Shipping* shipping,
                                       std::int64_t now_ns);
  // A checkpoint behind `last`, which is fetched if it is not here; none of `unusable`.
  std::optional<Index> newer(Index last, std::span<const Index> unusable, Shipping* shipping,
                             std::int64_t now_ns) {
    return find_behind(last, shipping, now_ns, unusable);
  }
  // Whether it is time for one of these.
  bool is_due(std::int64_t now_ns) noexcept;

 private:
  std::optional<Index> find_behind(Index last, Shipping* shipping, std::int64_t now_ns,
                                   std::span<const Index> unusable = {});

  const Config& config_;
  bool said_ = false;
  std::int64_t look_at_ns_ = 0;
};

}  // namespace crane::node
