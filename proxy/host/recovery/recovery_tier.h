// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a replica of this group recovers by: the processes as they were (CRIU), a new server on the
// files as they were, or all inputs again.  Whether CRIU dumps this server is known where it was
// tried: a follower tells its leader, and each node its crane-run.
//
// Threads: the node's one thread.
// INVARIANT TIER-1  A replica believes a refusal that it met itself, and its followers' while it
//                   leads; the newest one counts, and a dump that succeeds ends it, also another
//                   replica's where this machine has CRIU.

#include <cstdint>
#include <functional>
#include <string>

#include "checkpoint/kept.h"
#include "dmt/base/ids.h"
#include "proxy/host/config.h"
#include "proxy/host/leadership.h"
#include "proxy/host/recovery/recovery_status.h"
#include "proxy/replica/messages.h"

namespace crane::node {

struct RecoveryTierActions {
  // A follower tells its leader.
  std::function<void(ReplicaId to, const replica::RefusalMessage& note)> refuses;
  // The reason, for crane-run; empty: CRIU dumps this server.
  std::function<void(const std::string& reason)> changed;
};

class RecoveryTier {
 public:
  // The references outlive it.
  RecoveryTier(const Config& config, const Leadership& leadership, RecoveryTierActions actions)
      : config_(config), leadership_(leadership), actions_(std::move(actions)) {}

  // Why no checkpoints are taken on this machine; empty: they are.  It looks for CRIU.
  static std::string why_no_checkpoints(const Config& config);

  // The end of a dump: it is there, or CRIU refuses the server for good, or (empty) neither.
  void dump_ended(bool dumped, const std::string& refusal);
  // A replica has published a checkpoint.  `able`: this one could have (why_no_checkpoints()).
  void taken(const replica::CheckpointNote& note, bool able);
  // A follower's.
  void heard(const replica::RefusalMessage& note);

  // Why CRIU refuses this server; empty: it does not, as far as is known.
  const std::string& refusal() const noexcept { return refusal_; }
  // `whole_log`: entries 1, 2, .. can still be had.
  RecoveryStatus status(bool whole_log, const char* came_back_by);

 private:
  void set(const std::string& refusal);

  const Config& config_;
  const Leadership& leadership_;
  const RecoveryTierActions actions_;
  std::string refusal_;
  checkpoint::Newest newest_;
};

}  // namespace crane::node
