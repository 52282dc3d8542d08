// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether CRIU dumps the server of this group, which is known where it was tried: a follower tells
// its leader, and each node its crane-run.
//
// Threads: the node's one thread.
// INVARIANT TIER-1  A replica believes a refusal that it met itself, and its followers' while it
//                   leads; the newest one counts, and a dump that succeeds ends it, also another
//                   replica's where this machine has CRIU.

#include <cstring>
#include <string>

#include "proxy/replica/step.h"

namespace crane::replica {

class RecoveryTier {
 public:
  // The end of a dump: it is there, or CRIU refuses the server for good, or (empty) neither.
  void dump_ended(bool dumped, const std::string& refusal, const Facts& facts, ActionList& out) {
    if (!dumped && refusal.empty()) return;
    // The leader asks for checkpoints, and has none taken of its own server.
    if (!facts.leads && value(facts.leader) < kReplicasMax && facts.view != View{0}) {
      RefusalMessage note;
      refusal.copy(note.why, sizeof note.why - 1);
      out.push_back(Tell{facts.leader, note});  // lost: the next one will tell
    }
    set(refusal, out);
  }
  // A replica has published a checkpoint.  `able`: this one could have.
  void taken(const CheckpointNote& note, bool able, ActionList& out) {
    // One of the server's files says nothing of CRIU.
    if (able && note.by_criu != 0) set("", out);  // TIER-1
  }
  // A follower's.
  void heard(const RefusalMessage& note, bool leads, ActionList& out) {
    if (leads) set({note.why, strnlen(note.why, sizeof note.why)}, out);  // TIER-1
  }
  // No dump can be tried here at all.
  void cannot_dump(const std::string& why, ActionList& out) { set(why, out); }

  // Why CRIU refuses this server; empty: it does not, as far as is known.
  const std::string& refusal() const noexcept { return refusal_; }

 private:
  void set(const std::string& refusal, ActionList& out) {
    if (refusal == refusal_) return;
    refusal_ = refusal;
    out.push_back(refusal.empty()
                      ? Say{Level::kInfo, "recovery: CRIU dumps this server now"}
                      : Say{Level::kWarning, "recovery: this server cannot be dumped: " + refusal});
    out.push_back(ReportRefusal{refusal_});
  }

  std::string refusal_;
};

}  // namespace crane::replica
