// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether this replica goes on with what a leader put into the log: the leader's START tells what
// must be equal (agreed.h).
//
// A build of Crane with another version of the schedule takes over at one entry of the log, behind
// which a server of any build may begin (server_restart.h).  The old build may still elect leaders
// there, which have not come to that entry: their STARTs differ and are followed by nothing that a
// client did.  So a difference of the schedule counts with the first such entry of that reign.
//
// Threads: the node's one thread.  Pure.
// INVARIANT HANDOVER-2  No server runs what a client did in the reign of a leader that says of
//                       itself that its schedule is of another version.

#include "consensus/consensus.h"
#include "dmt/sequence/entry.h"
#include "proxy/host/agreed.h"

namespace crane::node {

class StartCheck {
 public:
  // `agreed` outlives it.
  explicit StartCheck(const Agreed& agreed) : agreed_(agreed) {}

  // The replica begins behind an entry at which the group was handed over.
  void begin_behind_hand_over() noexcept { open_ = true; }

  // What differs, before the server gets the entry; nullptr: it may.
  const char* look(const consensus::EntryView& entry) noexcept {
    const auto type = static_cast<EntryType>(entry.type);
    if (type != EntryType::kStart) {
      return origin_of(type) == EntryOrigin::kClient ? differs_ : nullptr;  // HANDOVER-2
    }
    differs_ = first_difference(agreed_, entry.payload);
    if (differs_ == nullptr) {
      open_ = false;
    } else if (!open_ || !only_schedule_differs(agreed_, entry.payload)) {
      return differs_;
    }
    return nullptr;
  }

 private:
  const Agreed& agreed_;
  bool open_ = false;              // no leader of this build has led since the hand-over
  const char* differs_ = nullptr;  // of the last START
};

}  // namespace crane::node
