// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether CRIU can dump the server of this group.  Only a replica that tries a dump learns it.  A
// follower reports it to its leader, and each node reports it to its crane-run.
//
// Threads: the node's one thread.
// INVARIANT TIER-1  A replica believes a refusal that it met itself and, while it leads, its
//                   followers' refusals; the newest one counts.  A successful dump ends it, also
//                   that of another replica if this machine has CRIU.

#include <cstring>
#include <string>

#include "proxy/replica/step.h"

namespace crane::replica {

class RecoveryTier {
 public:
  // The end of a dump: it exists, or CRIU will always refuse the server, or (empty) neither.
  void dump_ended(bool dumped, const std::string& refusal, const Facts& facts, ActionList& out) {
    if (!dumped && refusal.empty()) return;
    // The leader requests checkpoints, but not of its own server.
    if (!facts.leads && value(facts.leader) < kReplicasMax && facts.view != View{0}) {
      RefusalMessage note;
      refusal.copy(note.why, sizeof note.why - 1);
      out.push_back(SendNote{facts.leader, note});  // if it is lost, the next refusal repeats it
    }
    set(refusal, out);
  }
  // A replica has published a checkpoint.  `able`: this replica could have dumped it.
  void taken(const CheckpointNote& note, bool able, ActionList& out) {
    // A checkpoint of the server's files proves nothing about CRIU.
    if (able && note.by_criu != 0) set("", out);  // TIER-1
  }
  // The refusal of a follower.
  void on_report(const RefusalMessage& note, bool leads, ActionList& out) {
    if (leads) set({note.why, strnlen(note.why, sizeof note.why)}, out);  // TIER-1
  }
  // No dump can be tried on this machine.
  void cannot_dump(const std::string& why, ActionList& out) { set(why, out); }

  // Why CRIU refuses this server; empty: it does not, or this is not known.
  const std::string& refusal() const noexcept { return refusal_; }

 private:
  void set(const std::string& refusal, ActionList& out) {
    if (refusal == refusal_) return;
    refusal_ = refusal;
    out.push_back(
        refusal.empty()
            ? LogMessage{Level::kInfo, "recovery: CRIU can dump this server now"}
            : LogMessage{Level::kWarning, "recovery: this server cannot be dumped: " + refusal});
    out.push_back(ReportRefusal{refusal_});
  }

  std::string refusal_;
};

}  // namespace crane::replica
